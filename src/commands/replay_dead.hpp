// `recibo replay dead`, one of the family that replay.cpp makes.
#pragma once

namespace CLI {
class App;
}

namespace recibo::commands {

struct context;

void add_replay_dead(CLI::App& family, context& ctx);

}  // namespace recibo::commands
