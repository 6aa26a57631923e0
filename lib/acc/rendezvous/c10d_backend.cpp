// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/c10d_backend.hpp"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <map>
#include <utility>

#include "acc/base/text.hpp"
#include "acc/rendezvous/base64.hpp"
#include "acc/rendezvous/store_meeting.hpp"

namespace acc::launcher {
namespace {

namespace asio = boost::asio;
using Status = C10dMachine::Status;

// What torchrun writes while there is no state yet: base64 of "canimadam".
constexpr const char* kSentinel = "Y2FuaW1hZGFt";

struct Master {
  std::string addr = {};
  std::uint16_t port = 0;
  bool agent_serves = true;
};

RendezvousNode key_of(const OwnNode& node) {
  return {.addr = node.addr, .pid = node.pid, .local_id = node.local_id};
}

RendezvousState decode_state(const std::string& text) {
  if (text == kSentinel || text.empty()) return {};
  const auto pickle = from_base64(text);
  if (!pickle) {
    throw Error({.kind = ErrorKind::rendezvous,
                 .what = "the rendezvous state of this job cannot be read: it is not base64",
                 .where = {},
                 .hint = "something else may use this store"});
  }
  return read_rendezvous_state(*pickle);
}

C10dMachine::Now now_on_all_clocks() {
  return {.running = RunningClock::now(),
          .steady = std::chrono::steady_clock::now(),
          .wall = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now())};
}

C10dMachine::Settings for_agents(C10dMachine::Settings settings, TorchAgents agents) {
  settings.times_have_zone = agents == TorchAgents::v2_6;
  return settings;
}

}  // namespace

struct C10dBackend::Impl : StoreMeeting {
  Impl(asio::io_context& the_loop, Store& the_store, C10dBackendOptions the_options, Events the_events)
      : StoreMeeting(the_loop, the_store, std::move(the_events), [this] { on_store_lost(); }),
        options(std::move(the_options)),
        machine(for_agents(options.machine, options.agents)) {
    machine.next_round(now_on_all_clocks());
  }

  void nodes_changed();
  void take_in();
  void poll_soon();
  void poll();
  void on_state(StoreOutcome outcome, const std::string& text);
  void advance(const RendezvousState& read);
  void write(const RendezvousState& state);
  void poll_later(RunningClock::time_point next);
  void on_status(const RendezvousState& state, Status status);

  void fail_as_closed();
  void request_round();
  void begin_round(const RendezvousState& state);
  void on_ranks(const std::map<int, AssignedRanks>& ranks);
  void find_master(std::int64_t at_round);
  void master_found(const Master& master);
  void missing_nodes(const RendezvousState& state);
  void on_store_lost();
  void notify_closed();
  std::string prefix(std::int64_t of_round) const;

  C10dBackendOptions options;
  C10dMachine machine;
  const std::string key = "/torch.rendezvous." + options.run_id;
  std::map<RendezvousNode, OwnNode> own = {};
  std::vector<RendezvousNode> arrived = {};  // of them, those that the machine does not have yet

  bool busy = false;   // a store request is pending
  bool again = false;  // poll once more when it is done
  bool lost = false;
  bool was_open = false;   // the job, when the state was last read
  std::string token = {};  // the text read last

  std::optional<std::int64_t> round = {};  // with own nodes in it
  enum class Notified { nothing, round, change } notified = Notified::nothing;
  bool closed_notified = false;
  int group_size = 0;
  bool times_have_zone = true;
  std::map<int, OwnNode> members = {};  // own nodes of the round by group rank
  std::map<int, AssignedRanks> ranks = {};
  std::optional<Master> master = {};  // as last found
};

// When the job ends, the store's host may exit before this node.
void C10dBackend::Impl::on_store_lost() {
  lost = true;
  if (closing) return notify_closed();
  if (finishing) return finished();
  if (closed_notified) return;
  fail(Error(ErrorKind::rendezvous, {store.loss()}));
}

void C10dBackend::Impl::notify_closed() {
  if (!std::exchange(closed_notified, true)) notify(events.on_closed);
}

void C10dBackend::Impl::nodes_changed() {
  gather(own.size(), own.size() == options.machine.max_nodes, [this] { take_in(); });
}

void C10dBackend::Impl::take_in() {
  for (const RendezvousNode& node : std::exchange(arrived, {})) {
    if (own.contains(node)) machine.add(node);
  }
  poll_soon();
}

void C10dBackend::Impl::poll_soon() {
  if (std::exchange(again, true)) return;
  asio::post(loop, guard([this] {
               if (again) poll();
             }));
}

void C10dBackend::Impl::poll() {
  if (busy || failed || lost) return;
  busy = true;
  again = false;
  store.get(key, guard([this](StoreOutcome outcome, const std::optional<std::string>& text) {
              if (outcome != StoreOutcome::done || text) return on_state(outcome, text.value_or(""));
              store.compare_set(key, "", kSentinel,
                                guard([this](StoreOutcome set, const auto& now) { on_state(set, now); }));
            }));
}

void C10dBackend::Impl::on_state(StoreOutcome outcome, const std::string& text) try {
  if (outcome != StoreOutcome::done) return;  // on_closed reports it
  token = text;
  advance(decode_state(text));
} catch (const Error& error) {
  fail(error);
}

void C10dBackend::Impl::advance(const RendezvousState& read) {
  again = false;
  C10dMachine::Step step = machine.step(read, now_on_all_clocks());
  if (step.write) return write(step.state);
  busy = false;
  poll_later(step.next);
  on_status(step.state, step.status);
}

void C10dBackend::Impl::write(const RendezvousState& state) {
  const std::string text = to_base64(to_pickle(state));
  store.compare_set(key, token, text,
                    guard([this, text, state](StoreOutcome outcome, const std::string& now) {
                      if (outcome != StoreOutcome::done || now != text) return on_state(outcome, now);
                      token = text;
                      advance(state);
                    }));
}

void C10dBackend::Impl::poll_later(RunningClock::time_point next) {
  timer.expires_at(std::min(next, RunningClock::now() + options.poll_interval));
  timer.async_wait(guard([this](const auto& error) {
    if (!error) poll();
  }));
}

void C10dBackend::Impl::on_status(const RendezvousState& state, Status status) {
  if (status == Status::closed && !was_open && !closing) return fail_as_closed();
  was_open = was_open || status != Status::closed;
  switch (status) {
    case Status::idle:
      return;
    case Status::joining:
      return missing_nodes(state);
    case Status::spare:
      return missing(
          "the job has its " + pluralize(state.participants.size(), "node") + "; waiting as a spare", true);
    case Status::timed_out:
      return fail(Error(
          {.kind = ErrorKind::rendezvous,
           .what =
               pluralize(machine.nodes(), "node") + " waited " +
               std::to_string(
                   std::chrono::duration_cast<std::chrono::seconds>(options.machine.join_timeout).count()) +
               " s for a round of at least " + pluralize(options.machine.min_nodes, "node"),
           .where = store.loss().where,
           .hint = "start the other nodes with the same endpoint and id, or raise join_timeout"}));
    case Status::in_round:
      if (round != state.round) begin_round(state);
      return;
    case Status::changed:
      if (notified == Notified::change) return;
      exchange.reset();
      if (notified == Notified::nothing) return request_round();
      notified = Notified::change;
      notify(events.on_change);
      return;
    case Status::closed:
      exchange.reset();
      return notify_closed();
  }
}

// torchrun leaves a closed state in a store or file that outlives the job.
void C10dBackend::Impl::fail_as_closed() {
  fail(Error({.kind = ErrorKind::rendezvous,
              .what = "the job '" + options.run_id + "' is over already",
              .where = store.loss().where,
              .hint = options.endpoint ? "another --rdzv-id begins another job"
                                       : "another --rdzv-id or another file begins another job"}));
}

// Also when a round is over before anybody was notified of it: no worker runs.
void C10dBackend::Impl::request_round() {
  exchange.reset();
  round.reset();
  notified = Notified::nothing;
  machine.next_round(now_on_all_clocks());
  take_in();
}

void C10dBackend::Impl::missing_nodes(const RendezvousState& state) {
  const std::size_t here = state.participants.size();
  if (state.complete) {
    missing("waiting for " + pluralize(here, "node") + " to end the round before");
  } else if (here < options.machine.min_nodes) {
    missing(std::to_string(here) + " of at least " + pluralize(options.machine.min_nodes, "node") + " here");
  } else {
    missing(pluralize(here, "node") + " here, and time for more until the last call ends");
  }
}

std::string C10dBackend::Impl::prefix(std::int64_t of_round) const {
  return "/torch.rendezvous." + options.run_id + "." + std::to_string(of_round) + "/";
}

void C10dBackend::Impl::begin_round(const RendezvousState& state) {
  round = state.round;
  group_size = static_cast<int>(state.participants.size());
  times_have_zone = state.times_have_zone.value_or(true);
  last_missing.clear();
  members.clear();
  RankExchange::Options ask = {
      .prefix = prefix(*round), .group_size = group_size, .timeout = options.read_timeout};
  for (const auto& [node, rank] : state.participants) {
    const auto found = own.find(node);
    if (found == own.end()) continue;
    const OwnNode& member = found->second;
    members.emplace(static_cast<int>(rank), member);
    ask.own.emplace(static_cast<int>(rank), RoleInfo{member.role, member.local_world_size});
  }
  const auto first = members.find(0);
  if (first != members.end()) {
    if (!times_have_zone && options.agents == TorchAgents::v2_6) {
      return fail(Error({.kind = ErrorKind::rendezvous,
                         .what = "the other nodes run torchrun of torch 2.4 or 2.5, which must not meet a "
                                 "launcher of later rules as rank 0",
                         .where = store.loss().where,
                         .hint = "--rdzv-conf torch_version=2.4 (or 2.5), or the static rendezvous"}));
    }
    master = Master{.addr = first->second.addr,
                    .port = first->second.store_port,
                    .agent_serves = options.agent_serves && options.agents != TorchAgents::v2_4};
    if (options.agents == TorchAgents::v2_5 && options.endpoint)
      master = Master{options.endpoint->host, options.endpoint->port};
    ask.first = {{ask.prefix + "MASTER_ADDR", master->addr},
                 {ask.prefix + "MASTER_PORT", std::to_string(master->port)}};
  }
  exchange_ranks(std::move(ask), [this](const auto& got) { on_ranks(got); });
}

void C10dBackend::Impl::on_ranks(const std::map<int, AssignedRanks>& got) {
  ranks = got;
  if (members.contains(0)) return master_found(*master);
  find_master(*round);
}

// Agents of torch 2.6 and later publish the address once, in their first round.
void C10dBackend::Impl::find_master(std::int64_t at_round) {
  store.multi_get(
      {prefix(at_round) + "MASTER_ADDR", prefix(at_round) + "MASTER_PORT"},
      guard([this, at_round, of = *round](StoreOutcome outcome, const Store::Values& values) {
        if (outcome != StoreOutcome::done || round != of) return;
        if (values) {
          const auto port = parse_integer(values->at(1));
          if (!port || *port < 1 || *port > 65535) {
            return fail(Error({.kind = ErrorKind::rendezvous,
                               .what = "rank 0's node published an invalid port: '" + values->at(1) + "'"}));
          }
          return master_found({values->at(0), static_cast<std::uint16_t>(*port), times_have_zone});
        }
        if (!times_have_zone && options.endpoint)
          return master_found({options.endpoint->host, options.endpoint->port});
        if (master) return master_found(*master);
        if (at_round > 0) return find_master(at_round - 1);
        fail(Error({.kind = ErrorKind::rendezvous,
                    .what = "the node with rank 0 has not published the address of the workers' store",
                    .where = store.loss().where,
                    .hint = "use torch 2.6 or later on that node, or the static rendezvous"}));
      }));
}

void C10dBackend::Impl::master_found(const Master& found) {
  master = found;
  notified = Notified::round;
  Rounds rounds;
  for (const auto& [group_rank, node] : members) {
    Round its = round_of(group_rank, group_size, ranks.at(group_rank));
    its.master_addr = found.addr;
    its.master_port = found.port;
    its.use_agent_store = found.agent_serves;
    rounds.emplace_back(node, its);
  }
  notify(events.on_round, rounds);
}

C10dBackend::C10dBackend(asio::io_context& loop, Store& store, C10dBackendOptions options, Events events)
    : impl_(std::make_unique<Impl>(loop, store, std::move(options), std::move(events))) {
  impl_->poll_soon();
}

C10dBackend::~C10dBackend() = default;

void C10dBackend::add(const OwnNode& node) {
  if (impl_->own.insert_or_assign(key_of(node), node).second) impl_->arrived.push_back(key_of(node));
  impl_->nodes_changed();
}

void C10dBackend::remove(const OwnNode& node) {
  impl_->machine.remove(key_of(node));
  impl_->own.erase(key_of(node));
  impl_->nodes_changed();
}

void C10dBackend::next_round() {
  impl_->request_round();
}

void C10dBackend::close() {
  Impl& impl = *impl_;
  impl.closing = true;
  impl.machine.close();
  if (impl.lost || impl.failed) return asio::post(impl.loop, impl.guard([&impl] { impl.notify_closed(); }));
  impl.poll_soon();
}

void C10dBackend::finish(std::function<void()> done) {
  Impl& impl = *impl_;
  const int own = static_cast<int>(impl.members.size());
  const bool alone = !impl.round || own == 0 || own == impl.group_size || impl.lost;
  impl.finish(std::move(done), alone,
              {.prefix = alone ? "" : impl.prefix(*impl.round), .group_size = impl.group_size, .own = own});
}

}  // namespace acc::launcher
