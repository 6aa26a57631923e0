// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/c10d_backend.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/event_loop.hpp"
#include "acc/base/text.hpp"
#include "acc/rendezvous/base64.hpp"
#include "acc/rendezvous/c10d_round.hpp"
#include "acc/rendezvous/store_meeting.hpp"

namespace acc::launcher {
namespace {

using Status = C10dMachine::Status;

// What torchrun writes while there is no state yet: base64 of "canimadam".
constexpr const char* kSentinel = "Y2FuaW1hZGFt";

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

C10dMachine::Moment now_on_all_clocks() {
  return {.running = RunningClock::now(),
          .steady = net::steady_clock::now(),
          .wall = std::chrono::floor<std::chrono::microseconds>(net::system_clock::now())};
}

C10dMachine::Settings for_agents(C10dMachine::Settings settings, TorchAgents agents) {
  settings.times_have_zone = agents == TorchAgents::v2_6;
  return settings;
}

// What own nodes have written in rounds that are over, and torchrun's agents never remove: a job that
// restarts for months would fill the store. The last rounds stay.
class OldKeys {
 public:
  OldKeys(Store& store, std::size_t kept_rounds) : store_(store), kept_rounds_(kept_rounds) {}

  void add(std::vector<std::string> keys_of_round) {
    if (keys_of_round.empty()) return;
    rounds_.push_back(std::move(keys_of_round));
    if (rounds_.size() <= kept_rounds_) return;
    for (std::string& key : rounds_.front()) store_.delete_key(std::move(key), [](StoreOutcome, bool) {});
    rounds_.pop_front();
  }

 private:
  Store& store_;
  std::size_t kept_rounds_;
  std::deque<std::vector<std::string>> rounds_ = {};
};

}  // namespace

struct C10dBackend::Impl : StoreMeeting {
  Impl(net::io_context& the_loop, Store& the_store, C10dBackendOptions the_options, Events the_events)
      : StoreMeeting(the_loop, the_store, std::move(the_events), [this] { on_store_lost(); }),
        options(std::move(the_options)),
        machine(for_agents(options.machine, options.agents)) {
    machine.next_round(now_on_all_clocks());
  }

  RendezvousNode key_of(const OwnNode& node) const {
    return {.addr = node.addr, .pid = node.pid, .local_id = options.first_local_id + node.local_id};
  }
  void nodes_changed();
  void take_in();
  void poll_soon();
  void poll();
  void on_state(StoreOutcome outcome, const std::string& text);
  void advance(const RendezvousState& stored_state);
  void write(const RendezvousState& state);
  void poll_later(RunningClock::time_point next);
  void on_status(const RendezvousState& state, Status status);

  void fail_as_closed();
  void request_round();
  void begin_round(const RendezvousState& state);
  void missing_nodes(const RendezvousState& state);
  void on_store_lost();
  void notify_closed();

  C10dBackendOptions options;
  C10dMachine machine;
  const std::string key = "/torch.rendezvous." + options.run_id;
  std::map<RendezvousNode, OwnNode> own_nodes = {};
  std::vector<RendezvousNode> new_nodes = {};  // of them, those that the machine does not have yet

  enum class Reading {
    idle,
    soon,     // poll() is posted
    pending,  // the store is asked
  } reading = Reading::idle;
  std::string token = {};  // the text read last

  enum class Job {
    unread,
    open,
    closing,  // close() was called
    closed,   // on_closed was
  } job = Job::unread;

  std::optional<C10dRound> round = {};
  std::optional<C10dMaster> master = {};  // of the round before
  OldKeys rank_keys{store, 2};            // of own nodes alone, which have left the rounds before
  OldKeys master_keys{store, 64};         // for nodes of others that stood still, and go on in their round
};

// When the job ends, the store's host may exit before this node.
void C10dBackend::Impl::on_store_lost() {
  if (job != Job::closing && job != Job::closed && !on_finished)
    return fail(Error(ErrorKind::rendezvous, {store.loss()}));
  stop();
  if (job == Job::closing) return notify_closed();
  if (on_finished) call_finished();
}

void C10dBackend::Impl::notify_closed() {
  if (std::exchange(job, Job::closed) != Job::closed) notify(events.on_closed);
}

void C10dBackend::Impl::nodes_changed() {
  gather(own_nodes.size(), own_nodes.size() == options.machine.max_nodes, [this] { take_in(); });
}

void C10dBackend::Impl::take_in() {
  for (const RendezvousNode& node : std::exchange(new_nodes, {})) {
    if (own_nodes.contains(node)) machine.add(node);
  }
  poll_soon();
}

void C10dBackend::Impl::poll_soon() {
  if (reading != Reading::idle) return;
  reading = Reading::soon;
  net::post(loop, guard([this] {
              if (reading == Reading::soon) poll();
            }));
}

void C10dBackend::Impl::poll() {
  if (reading == Reading::pending || stopped) return;
  reading = Reading::pending;
  store.get(key, guard([this](StoreOutcome outcome, const std::optional<std::string>& text) {
              if (outcome != StoreOutcome::done || text) return on_state(outcome, text.value_or(""));
              store.compare_set(key, "", kSentinel,
                                guard([this](StoreOutcome set_outcome, const auto& current) {
                                  on_state(set_outcome, current);
                                }));
            }));
}

void C10dBackend::Impl::on_state(StoreOutcome outcome, const std::string& text) try {
  if (outcome != StoreOutcome::done) return;  // on_closed reports it
  token = text;
  advance(decode_state(text));
} catch (const Error& error) {
  fail(error);
}

void C10dBackend::Impl::advance(const RendezvousState& stored_state) {
  C10dMachine::Step step = machine.step(stored_state, now_on_all_clocks());
  if (step.write) return write(step.state);
  reading = Reading::idle;
  poll_later(step.next);
  on_status(step.state, step.status);
}

void C10dBackend::Impl::write(const RendezvousState& state) {
  const std::string text = to_base64(to_pickle(state));
  store.compare_set(key, token, text,
                    guard([this, text, state](StoreOutcome outcome, const std::string& current) {
                      if (outcome != StoreOutcome::done || current != text) return on_state(outcome, current);
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
  if (job == Job::unread) {
    if (status == Status::closed) return fail_as_closed();
    job = Job::open;
  }
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
      if (!round) begin_round(state);
      return;
    case Status::changed:
      if (!round || round->stage() == C10dRound::Stage::meeting) return request_round();
      if (round->stage() == C10dRound::Stage::over) return;
      round->end();
      notify(events.on_change);
      return;
    case Status::closed:
      if (round) round->end();
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
  if (round) master = round->master();
  round.reset();
  machine.next_round(now_on_all_clocks());
  take_in();
}

void C10dBackend::Impl::missing_nodes(const RendezvousState& state) {
  const std::size_t count = state.participants.size();
  if (state.complete) {
    missing("waiting for " + pluralize(count, "node") + " to end the round before");
  } else if (count < options.machine.min_nodes) {
    missing(std::to_string(count) + " of at least " + pluralize(options.machine.min_nodes, "node") + " here");
  } else {
    missing(pluralize(count, "node") + " here, and time for more until the last call ends");
  }
}

void C10dBackend::Impl::begin_round(const RendezvousState& state) {
  last_missing.clear();
  round.emplace(*this, options, state, own_nodes, master);
  if (options.endpoint) {  // a file is only appended to, also by removing
    rank_keys.add(round->rank_keys());
    master_keys.add(round->master_keys());
  }
  round->start();
}

C10dBackend::C10dBackend(net::io_context& loop, Store& store, C10dBackendOptions options, Events events)
    : impl_(std::make_unique<Impl>(loop, store, std::move(options), std::move(events))) {
  impl_->poll_soon();
}

C10dBackend::~C10dBackend() = default;

void C10dBackend::add(const OwnNode& node) {
  const RendezvousNode key = impl_->key_of(node);
  if (impl_->own_nodes.insert_or_assign(key, node).second) impl_->new_nodes.push_back(key);
  impl_->nodes_changed();
}

void C10dBackend::remove(const OwnNode& node) {
  const RendezvousNode key = impl_->key_of(node);
  impl_->machine.remove(key);
  impl_->own_nodes.erase(key);
  impl_->nodes_changed();
}

void C10dBackend::next_round() {
  impl_->request_round();
}

void C10dBackend::close() {
  Impl& impl = *impl_;
  if (impl.job != Impl::Job::closed) impl.job = Impl::Job::closing;
  impl.machine.close();
  if (impl.stopped) return net::post(impl.loop, impl.guard([&impl] { impl.notify_closed(); }));
  impl.poll_soon();
}

void C10dBackend::finish(std::function<void()> on_done) {
  Impl& impl = *impl_;
  impl.machine.finish();
  const bool is_alone = !impl.round || impl.round->is_alone();
  impl.finish(std::move(on_done), is_alone, is_alone ? ExitBarrier::Options() : impl.round->exit_barrier());
}

}  // namespace acc::launcher
