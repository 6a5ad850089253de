// A workflow as a picture: for a terminal, for Mermaid, and as SVG (`recibo workflow NAME --format table|mermaid|svg`).
// Pure; safe from any thread. The same table always gives the same text. Labels are shown as data: nothing in them is
// markup, whatever they hold.
#pragma once

#include "recibo/transition/workflow.hpp"

#include <chrono>
#include <string>

namespace recibo::transition {

// Aligned text: the states with label, kind, limit and owner, then the moves. Lines end in LF and never in a blank.
// Columns are counted in characters, which is right for scripts whose characters are one cell wide.
std::string draw_table(const workflow& table);

// A stateDiagram-v2, one arrow for each move, labelled "event (by)".
std::string draw_mermaid(const workflow& table);

// A stand-alone SVG document: each state a vertical line under its box, each move an arrow between two of them on a row of
// its own, so that nothing ever overlaps, however many moves there are.
std::string draw_svg(const workflow& table);

// "15m", "1d", "1h30m": the largest units first, none that is zero.
std::string duration_text(std::chrono::seconds duration);

// "provider", "client, operator".
std::string actors_text(const move& row);

}  // namespace recibo::transition
