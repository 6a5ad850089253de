// workflows: the tables of states and transitions. What hangs together is checked by transition::workflow::make; this
// file maps its findings back to the lines they come from.
#include "sections.hpp"

#include <algorithm>
#include <map>

namespace recibo::config {
namespace {

using transition::actor_kind;

// Customer-safe words when none are given: "requires_review" → "Requires review".
std::string label_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  if (!name.empty() && name.front() >= 'a' && name.front() <= 'z') name.front() = static_cast<char>(name.front() - 'a' + 'A');
  return name;
}

class workflow_reader {
 public:
  workflow_reader(reading& r, const named& where) : r_(r), where_(where), problems_before_(r.problems.size()) {}

  std::shared_ptr<const transition::workflow> read() {
    check_name(r_, where_.at, "workflow", where_.name);
    {
      section s(r_, where_.value);
      if (!s.good()) return nullptr;
      const field initial = s.require("initial", "the state of an operation that was just accepted");
      if (initial) read_text(r_, initial, initial_, 63);
      places_["initial"] = initial ? initial.at : s.at();
      if (initial) words_["initial"] = initial.value;
      const field states = s.require("states", "a workflow is its states and transitions");
      if (states) places_["states"] = s.key_at("states");
      for (const named& one : members(r_, states)) read_state(one);
      const field transitions = s.require("transitions", "a workflow is its states and transitions");
      for (const field& one : elements(r_, transitions)) read_moves(one);
      if (const field rules = s.get("items"))
        for (const field& one : elements(r_, rules)) read_items_rule(one);
    }
    check_owners();
    return make();
  }

 private:
  void read_state(const named& one) {
    transition::state out;
    out.name = std::string(one.name);
    out.label = label_of(out.name);
    const std::string where = "states/" + out.name;
    places_[where] = one.at;
    section s(r_, one.value);
    if (const field label = s.get("label")) {
      read_text(r_, label, out.label, 200);
      places_[where + "/label"] = label.at;
    }
    if (const field terminal = s.get("terminal")) read_bool(r_, terminal, out.terminal);
    if (const field done = s.get("done")) read_bool(r_, done, out.done);
    if (const field owner = s.get("owner")) {
      read_text(r_, owner, out.owner, 63);
      places_[where + "/owner"] = owner.at;
    }
    const field limit = s.get("limit");
    if (out.terminal && s.has("limit")) {
      r_.error(s.key_at("limit"), "limit: a terminal state lasts for ever");
    } else if (limit) {
      read_limit(r_, limit, out.limit);
      places_[where + "/limit"] = limit.at;
      if (const node* event = limit.value->find("event")) places_[where + "/limit/event"] = event->at;
      if (const node* after = limit.value->find("after")) places_[where + "/limit/after"] = after->at;
    } else if (s.good() && !out.terminal && !s.has("limit")) {
      r_.error(one.at,
               out.name + ": a state that is not terminal says how long it may last: limit: {after, event}, or limit: none");
    }
    states_.push_back(std::move(out));
  }

  // One row of the file is a move for each state in `from`.
  void read_moves(const field& one) {
    section s(r_, one);
    transition::move out;
    const field from = s.require("from", "the state or states that it leaves");
    const field event = s.require("event", "what is raised"), to = s.require("to", "the state that it leads to");
    const field by = s.require("by", "who may raise it: provider, client, operator or clock");
    const field evidence = s.get("evidence");
    bool good = event && read_text(r_, event, out.event, 63);
    good = (to && read_text(r_, to, out.to, 63)) && good;
    if (evidence) read_text(r_, evidence, out.evidence, 63);
    constexpr choice<actor_kind> actors[] = {{"provider", actor_kind::provider},
                                             {"client", actor_kind::client},
                                             {"operator", actor_kind::operator_},
                                             {"clock", actor_kind::clock}};
    for (const field& who : elements(r_, by, true)) {
      actor_kind kind{};
      if (read_word(r_, who, kind, actors)) out.by.push_back(kind);
    }
    for (const field& state : elements(r_, from, true)) {
      if (!read_text(r_, state, out.from, 63) || !good) continue;
      const std::string where = "transitions/" + std::to_string(moves_.size());
      places_[where] = one.at;
      places_[where + "/from"] = state.at;
      places_[where + "/event"] = event.at;
      places_[where + "/to"] = to.at;
      words_[where + "/from"] = state.value;
      words_[where + "/event"] = event.value;
      words_[where + "/to"] = to.value;
      places_[where + "/by"] = by ? by.at : one.at;
      places_[where + "/evidence"] = evidence ? evidence.at : one.at;
      moves_.push_back(out);
    }
  }

  // What the states of the items mean for their operation.
  void read_items_rule(const field& one) {
    section s(r_, one);
    const field all = s.get("all"), any = s.get("any");
    const field event = s.require("event", "what is raised when the rule holds");
    if (s.good() && s.has("all") == s.has("any"))
      r_.error(one.at, "items: a rule says either all or any: the states that all items, or at least one, must be in");
    const field& states = all ? all : any;
    transition::items_rule out;
    out.which = all ? transition::items_rule::quantifier::all : transition::items_rule::quantifier::any;
    if (!event || !read_text(r_, event, out.event, 63) || !states || s.has("all") == s.has("any")) return;
    for (const field& state : elements(r_, states, true)) {
      std::string name;
      if (read_text(r_, state, name, 63)) out.states.push_back(std::move(name));
    }
    const std::string where = "items/" + std::to_string(items_.size());
    places_[where] = one.at;
    places_[where + "/states"] = states.at;
    places_[where + "/event"] = event.at;
    words_[where + "/event"] = event.value;
    items_.push_back(std::move(out));
  }

  void check_owners() {
    for (const auto& s : states_) {
      if (s.terminal || !s.owner.empty()) continue;
      const bool others = std::any_of(moves_.begin(), moves_.end(), [&](const transition::move& m) {
        return m.from == s.name &&
               std::any_of(m.by.begin(), m.by.end(), [](actor_kind who) { return who != actor_kind::provider; });
      });
      if (others)
        r_.error(
            places_["states/" + s.name],
            s.name +
                ": owner is required, because not the provider alone moves this state: who has to act when it lasts too long");
    }
  }

  std::shared_ptr<const transition::workflow> make() {
    const bool complete = r_.problems.size() == problems_before_;
    std::optional<transition::workflow> out;
    for (const auto& p : transition::workflow::make(std::string(where_.name), initial_, states_, moves_, out, items_)) {
      if (p.where == "name") continue;  // said above
      if (!complete && follows_from_gaps(p.where)) continue;
      r_.error(place_of(p.where), subject_of(p.where) + ": " + p.message);
    }
    if (!complete || !out) return nullptr;
    return std::make_shared<const transition::workflow>(std::move(*out));
  }

  // Where rows could not be read, a state may seem unreachable or a limit without its move: said once it can be known.
  static bool follows_from_gaps(std::string_view where) {
    return where == "initial" || where.ends_with("/limit/event") || where.ends_with("/limit/after") || where.ends_with("/by") ||
           (where.starts_with("states") && std::count(where.begin(), where.end(), '/') <= 1);
  }

  // What a finding is about, with the word in question: `to "nowhere"`; of a state its name alone.
  std::string subject_of(std::string_view where) const {
    const std::size_t slash = where.rfind('/');
    const std::string last(where.substr(slash == std::string_view::npos ? 0 : slash + 1));
    const auto it = words_.find(where);
    return it == words_.end() || it->second->expanded ? last : last + " " + in_quotes(it->second->text);
  }

  position place_of(std::string where) const {
    while (true) {
      if (const auto it = places_.find(where); it != places_.end()) return it->second;
      const std::size_t slash = where.rfind('/');
      if (slash == std::string::npos) return where_.at;
      where.resize(slash);
    }
  }

  reading& r_;
  const named& where_;
  std::size_t problems_before_;
  std::string initial_;
  std::vector<transition::state> states_;
  std::vector<transition::move> moves_;
  std::vector<transition::items_rule> items_;
  std::map<std::string, position> places_;
  std::map<std::string, const node*, std::less<>> words_;  // values that a message should name
};

// Every event leads somewhere without anybody's configuration; the same table stands, with comments, in config/recibo.yaml.
constexpr std::string_view default_text = R"(default:
  initial: accepted
  states:
    accepted:        {label: "Accepted, waiting to be sent", limit: {after: 15m, event: overdue}, owner: operations}
    processing:      {label: "In progress at the provider", limit: {after: 30m, event: overdue}, owner: operations}
    completed:       {label: "Completed", terminal: true, done: true}
    failed:          {label: "Rejected by the provider", terminal: true}
    expired:         {label: "Expired", terminal: true}
    unknown:         {label: "Being checked with the provider", limit: {after: 24h, event: escalate}, owner: operations}
    requires_review: {label: "Being reviewed", limit: none, owner: operations}
  transitions:
    - {from: accepted, event: submitted, to: processing, by: client}
    - {from: [accepted, unknown], event: progress, to: processing, by: provider}
    - {from: [accepted, processing, unknown, requires_review], event: complete, to: completed, by: provider}
    - {from: [accepted, processing, unknown, requires_review], event: fail, to: failed, by: provider}
    - {from: [accepted, processing, unknown, requires_review], event: expire, to: expired, by: [provider, operator]}
    - {from: [accepted, processing], event: overdue, to: unknown, by: clock}
    - {from: unknown, event: escalate, to: requires_review, by: clock}
    - {from: [accepted, processing, unknown, requires_review], event: resolve_completed, to: completed, by: operator, evidence: statement}
    - {from: [accepted, processing, unknown, requires_review], event: resolve_failed, to: failed, by: operator, evidence: statement}
)";

}  // namespace

bool read_limit(reading& r, const field& f, std::optional<transition::limit>& out) {
  if (f.value->what == node::kind::scalar && f.value->text == "none") {
    out.reset();
    return true;
  }
  if (f.value->what == node::kind::scalar) {
    r.error(f.at, std::string(f.name) + ": expected {after, event} or none, found " + found(*f.value));
    return false;
  }
  section s(r, f);
  transition::limit limit;
  const field after = s.require("after", "how long the state may last"), event = s.require("event", "what is raised then");
  bool good = after && read_duration(r, after, limit.after, "1s", "3650d");
  good = (event && read_text(r, event, limit.event, 63)) && good;
  if (good) out = std::move(limit);
  return good;
}

std::shared_ptr<const transition::workflow> default_workflow() {
  static const auto made = [] {
    const environment nothing = [](const std::string&) { return std::nullopt; };
    const document text = parse_document(default_text, nothing);
    reading r("default workflow", {}, nothing, {});
    std::shared_ptr<const transition::workflow> out;
    for (const named& one : members(r, {"workflows", &text.root, text.root.at, {}})) out = workflow_reader(r, one).read();
    return out;
  }();
  return made;
}

void read_workflows(reading& r, const field& f, settings& out) {
  bool own_default = false;
  for (const named& one : members(r, f)) {
    own_default = own_default || one.name == "default";
    if (auto table = workflow_reader(r, one).read()) out.workflows.emplace(std::string(one.name), std::move(table));
  }
  if (!own_default) out.workflows.emplace("default", default_workflow());
}

}  // namespace recibo::config
