// SPDX-License-Identifier: Apache-2.0
#include "simulation/job.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "acc/base/log.hpp"

namespace simulation {
namespace {

using namespace std::chrono_literals;
using namespace acc::launcher;
using Kind = Fault::Kind;

constexpr std::uint16_t kEndpointPort = 29400;
// torchrun's: how long an agent waits for the success of the others.
constexpr Duration kExitBarrierTimeout = 300s;
// Many times what a job has.
constexpr std::size_t kMaxEvents = 3000000;
constexpr auto kMilliseconds = [](Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
};

// libsodium's random numbers are the world's.
void use_random_of_world() {
  static randombytes_implementation implementation = {
      .implementation_name = [] { return "simulation"; },
      .random = [] { return static_cast<std::uint32_t>(World::current().random().next()); },
      .stir = nullptr,
      .uniform = nullptr,
      .buf =
          [](void* const buffer, const std::size_t size) {
            auto* const bytes = static_cast<unsigned char*>(buffer);
            for (std::size_t i = 0; i < size; ++i)
              bytes[i] = static_cast<unsigned char>(World::current().random().next());
          },
      .close = nullptr};
  // Draws, the first time.
  static const int started = sodium_init();
  static_cast<void>(started);
  randombytes_set_implementation(&implementation);
}

RendezvousKind kind_of(Backend backend) {
  if (backend == Backend::static_) return RendezvousKind::static_;
  return backend == Backend::etcd ? RendezvousKind::etcd : RendezvousKind::c10d;
}

LaunchPlan plan_of(const Schedule& schedule, int node, int process_id) {
  LaunchPlan plan;
  plan.process = process_id;
  plan.run_id = "job";
  plan.num_machines = schedule.max_nodes;
  plan.nproc_per_node = 1 + node % 2;
  plan.max_restarts = schedule.max_restarts;
  plan.master_addr = "n0";
  plan.master_port = kEndpointPort;
  RendezvousPlan& rendezvous = plan.rendezvous;
  rendezvous.backend = kind_of(schedule.backend);
  rendezvous.endpoint_host = "n0";
  rendezvous.endpoint_port = kEndpointPort;
  if (schedule.backend == Backend::etcd) {
    rendezvous.endpoint_host = fmt::format("n{}", schedule.etcd_machine());
    rendezvous.endpoint_port = Etcd::kPort;
  }
  rendezvous.min_nodes = schedule.min_nodes;
  rendezvous.max_nodes = schedule.max_nodes;
  rendezvous.node_rank = node;
  rendezvous.node_timeout = kMilliseconds(schedule.node_timeout);
  rendezvous.join_timeout = kMilliseconds(schedule.join_timeout);
  rendezvous.last_call_timeout = kMilliseconds(schedule.last_call);
  rendezvous.read_timeout = kMilliseconds(schedule.read_timeout);
  if (schedule.backend == Backend::file) rendezvous.store_file = "/shared/job";
  if (schedule.spares >= 0) rendezvous.spares = schedule.spares;
  if (schedule.has_secret) rendezvous.secret = "known to all nodes of this job";
  return plan;
}

}  // namespace

// Process.

Process::Process(Job& job, int node, int process_id)
    : job_(job),
      node_(node),
      process_id_(process_id),
      plan_(plan_of(job.schedule(), node, process_id)),
      loop_(job.schedule().machine_of(node)) {}

Process::~Process() {
  loop_.enter([this] { rendezvous_.reset(); });
}

void Process::trace(const std::string& text) {
  job_.world().trace(fmt::format("n{} {}: {}", node_, process_id_, text));
}

template <class Function>
void Process::later(Duration delay, Function function) {
  job_.world().after(delay, [this, exists = std::weak_ptr(exists_), function, attempt = attempt_] {
    if (exists.expired() || !is_alive_ || attempt != attempt_) return;
    loop_.post([this, function, attempt] {
      if (attempt == attempt_) function();
    });
  });
}

void Process::enter(Phase phase) {
  phase_ = phase;
  phase_begin_ = job_.world().now();
}

std::string Process::overdue(Time last_work) const {
  if (loop_.is_paused() || phase_ == Phase::working) return {};
  const Duration notice_time = job_.promises().notice_time();
  Duration limit = 1s;
  // A coordinator may be lost at the end of the wait for it.
  if (phase_ == Phase::meeting) limit = job_.schedule().join_timeout + 2 * notice_time + 12s;
  // In a file, it may have been a spare until it was able to see that the others are lost.
  if (phase_ == Phase::meeting && job_.disk() != nullptr) limit += job_.schedule().read_timeout;
  if (phase_ == Phase::waiting) limit = 2 * notice_time + 5s;
  if (phase_ == Phase::waiting && job_.disk() != nullptr)
    limit = kExitBarrierTimeout + 3 * job_.schedule().read_timeout + 5s;
  if (phase_ == Phase::leaving)
    limit = plan_.shutdown_timeout + plan_.rendezvous.close_timeout + 2 * notice_time;
  const bool waits_for_others = phase_ == Phase::meeting || phase_ == Phase::waiting;
  Time begin = waits_for_others ? std::max(phase_begin_, last_work) : phase_begin_;
  // A spare waits for the end of the round.
  if (phase_ == Phase::meeting) begin = std::max(begin, job_.promises().last_round_end());
  if (job_.world().now() - begin <= limit) return {};
  constexpr std::array kNames = {"to meet the other nodes", "", "for the end of the round",
                                 "for its workers to stop", "to leave"};
  return fmt::format("process {} waits too long {}", process_id_,
                     kNames.at(static_cast<std::size_t>(phase_)));
}

void Process::start() {
  enter(Phase::meeting);
  trace("starts");
  loop_.post([this] {
    rendezvous_ = std::make_unique<ClusterNode>(loop_, plan_);
    // As the agent's, which queues them.
    rendezvous_->on_event([this](const NodeEvent& event) { loop_.post([this, event] { on_event(event); }); });
    join();
  });
}

void Process::join() {
  ++attempt_;
  enter(Phase::meeting);
  succeeded_at_.reset();
  ready_.reset();
  verdict_.reset();
  trace("joins");
  rendezvous_->join();
}

void Process::on_event(const NodeEvent& event) {
  if (const auto* ready = std::get_if<RoundReady>(&event)) on_ready(*ready);
  if (const auto* verdict = std::get_if<RoundOver>(&event)) on_round_over(*verdict);
  if (const auto* notice = std::get_if<Notice>(&event)) trace("notice: " + notice->text);
  if (std::holds_alternative<Left>(event)) end();
  if (std::holds_alternative<JobDone>(event)) on_job_done();
}

// In a file, a node waits for the others as torchrun's agent does.
void Process::on_job_done() {
  trace("the job is done");
  const bool is_alone =
      job_.disk() != nullptr && succeeded_at_ &&
      (job_.world().now() - *succeeded_at_ >= kExitBarrierTimeout || disk_use().has_lost_file);
  is_alone ? job_.promises().on_success_alone(process_id_) : job_.promises().on_job_done(process_id_);
  job_done_ = true;
  if (phase_ != Phase::stopping && phase_ != Phase::leaving) stop_workers();
}

void Process::on_ready(const RoundReady& ready) {
  ready_ = ready;
  if (phase_ != Phase::meeting) return;
  enter(Phase::working);
  trace(fmt::format("workers start: node {} of {}, ranks {} and up of {}, store {}:{}, restarts {}",
                    ready.round.machine_rank, ready.round.num_machines, ready.round.first_rank,
                    ready.round.world_size, ready.round.master_addr, ready.round.master_port,
                    ready.restarts));
  constexpr std::int64_t kMaxRounds = 1000000;
  const DiskUse& use = disk_use();
  const std::int64_t number =
      job_.disk() == nullptr ? ready.restarts : use.file_of_round * kMaxRounds + use.round;
  job_.promises().on_workers_start(process_id_, plan_.nproc_per_node, ready, number);
  const Duration work = job_.schedule().work;
  later(job_.world().random().between(work / 2, work), [this] { on_workers_end(); });
}

void Process::on_workers_end() {
  if (phase_ != Phase::working) return;
  enter(Phase::waiting);
  succeeded_at_ = job_.world().now();
  trace("workers have succeeded");
  job_.promises().on_success(process_id_);
  job_.promises().on_workers_stop(process_id_);
  rendezvous_->finish();
}

void Process::fail_worker() {
  loop_.post([this] {
    if (phase_ != Phase::working) return;
    enter(Phase::waiting);
    trace("a worker fails");
    job_.promises().on_failure(process_id_);
    job_.promises().on_workers_stop(process_id_);
    rendezvous_->fail(
        {.restart = ready_->restarts < plan_.max_restarts, .failure = "{}", .exit_code = kWorkerCode});
  });
}

void Process::on_round_over(const RoundOver& verdict) {
  trace(fmt::format("round over, {}, code {}: {}", verdict.restart ? "again" : "for good", verdict.exit_code,
                    verdict.text));
  if (verdict_ || phase_ == Phase::leaving) return;
  verdict_ = verdict;
  if (phase_ != Phase::stopping) stop_workers();
}

void Process::stop_workers() {
  enter(Phase::stopping);
  ++attempt_;
  later(job_.world().random().between(0ms, 500ms), [this] {
    job_.promises().on_workers_stop(process_id_);
    go_on();
  });
}

void Process::go_on() {
  if (verdict_ && verdict_->restart && !is_terminated_ && !job_done_) return join();
  leave();
}

void Process::leave() {
  enter(Phase::leaving);
  ++attempt_;
  code_ = job_done_ ? 0 : is_terminated_ ? kTerminatedCode : verdict_ ? verdict_->exit_code : 0;
  trace("leaves");
  rendezvous_->leave(is_terminated_ ? "it was asked to end by SIGTERM" : "", code_);
}

void Process::terminate() {
  loop_.post([this] {
    if (phase_ == Phase::leaving || is_terminated_ || !rendezvous_) return;
    trace("is terminated");
    is_terminated_ = true;
    if (phase_ != Phase::stopping) stop_workers();
  });
}

void Process::stop_job() {
  loop_.post([this] {
    if (phase_ == Phase::leaving || !rendezvous_ || !rendezvous_->stops_alone().empty()) return;
    trace("stops the job");
    rendezvous_->stop_job(kTerminatedCode);
  });
}

void Process::announce_end() {
  loop_.post([this] {
    if (rendezvous_) rendezvous_->announce_end(SIGUSR1);
  });
}

void Process::pause(bool pauses) {
  if (!is_alive_) return;
  trace(pauses ? "is stopped" : "continues");
  job_.promises().on_pause(process_id_, pauses);
  enter(phase_);
  loop_.pause(pauses);
}

void Process::die() {
  trace("dies");
  is_alive_ = false;
  job_.promises().on_end(process_id_, -1);
}

// Not at once: this is called by a handler of the process.
void Process::end() {
  is_alive_ = false;
  job_.promises().on_end(process_id_, code_);
  job_.network().end(loop_);
  loop_.pause(true);
  job_.on_ended(node_);
}

// Job.

Job::Job(const Schedule& schedule, bool with_trace)
    : schedule_(schedule), world_(schedule.seed), network_(schedule.all_machines()), promises_(schedule_) {
  use_random_of_world();
  acc::log::open({.level = with_trace ? acc::log::Level::debug : acc::log::Level::off});
  // Once for all jobs: the log goes where it was sent first.
  acc::log::send_to([](std::string_view lines) {
    World& world = World::current();
    const std::string node = world.running == nullptr ? "" : fmt::format("n{} ", world.running->machine);
    if (world.keeps_lines())
      world.trace(node + std::string(lines.substr(0, lines.find_last_not_of('\n') + 1)));
  });
  if (with_trace) world_.keep_lines();
  set_latencies();
  if (schedule.backend == Backend::file) disk_ = std::make_unique<SharedDisk>(schedule.read_timeout);
  if (schedule.backend != Backend::etcd) return;
  etcd_ = std::make_unique<Etcd>(schedule.etcd_machine());
  etcd_->start();
}

void Job::set_latencies() {
  Random& random = world_.random();
  for (int from = 0; from < network_.machines(); ++from) {
    for (int to = 0; to < network_.machines(); ++to)
      network_.set_latency(from, to, random.between(50us, random.chance(90) ? 1ms : 40ms));
  }
}

void Job::start(int node) {
  --coming_;
  if (processes_.contains(node) || !network_.machine(schedule_.machine_of(node)).has_power) return;
  const auto& process = processes_[node] = std::make_unique<Process>(*this, node, next_process_++);
  process->start();
}

void Job::on_ended(int node) {
  world_.after(1ms, [this, node] { processes_.erase(node); });
}

Outcome Job::run() {
  const Time begin = world_.now();
  for (int node = 0; node < schedule_.nodes; ++node) {
    ++coming_;
    world_.at(begin + schedule_.starts.at(static_cast<std::size_t>(node)), [this, node] { start(node); });
  }
  for (const Fault& fault : schedule_.faults) world_.at(begin + fault.at, [this, fault] { apply(fault); });
  // Far beyond what check_processes() allows, for what goes round in circles.
  const Duration barriers = disk_ ? 2 * kExitBarrierTimeout : Duration();
  const Time end = last_end() + 3 * schedule_.join_timeout + 2 * schedule_.work + barriers + 120s;
  std::size_t events = 0;
  while (!is_over() && promises_.broken() == Promise::none && world_.step(end)) {
    promises_.check(is_whole());
    if (disk_) check_disk();
    if (++events % 64 == 0) check_processes();
    if (events == kMaxEvents) promises_.violate(Promise::bounded_waits, "it goes round in circles");
  }
  if (!is_over()) promises_.violate(Promise::bounded_waits, "a process waits for ever");
  etcd_.reset();
  check_end();
  world_.running = nullptr;
  processes_.clear();
  return {promises_.broken(), promises_.violation(),   promises_.is_done(),
          world_.hash(),      promises_.most_memory(), world_.lines()};
}

void Job::check_disk() {
  disk_->check();
  promises_.check_file(world_.now() - disk_->blocked_since());
}

void Job::check_processes() {
  // A listener, a store and its client for each process, and what it connects to while it looks for others.
  const std::size_t max_held = 64 * static_cast<std::size_t>(schedule_.nodes);
  if (const std::size_t held = network_.held(); held > max_held)
    promises_.violate(Promise::small_queues, fmt::format("{} ends of connections are open", held));
  const std::size_t unread = network_.unread();
  for (const auto& [node, process] : processes_) {
    if (!process->is_alive()) continue;
    promises_.check_queues(process->loop().tasks(), unread);
    promises_.check_requests(process->requests_to_etcd());
    promises_.check_memory(process->loop().memory());
    if (disk_) promises_.check_opens(disk_->rate_of_opens(process->disk_use()));
    if (const std::string wait = process->overdue(promises_.last_work()); !wait.empty())
      promises_.violate(Promise::bounded_waits, wait);
  }
}

// What shows when all is over.
void Job::check_end() {
  if (promises_.broken() != Promise::none) return;
  if (network_.listening() > 0)
    promises_.violate(Promise::small_queues, "a port is open, and no process is there");
  if (must_succeed() && !promises_.is_done())
    promises_.violate(Promise::unhindered_success, "the job has not succeeded, and nothing hinders it");
  const auto hits_one = [](const Fault& fault) {
    return fault.kind != Kind::worker_fails && fault.kind != Kind::stop_job && fault.kind != Kind::notice &&
           fault.kind != Kind::clock_jump;
  };
  // Before their first round, a node may have ended without the others' knowing of it.
  const bool have_met = promises_.nodes_of_last_round() > 0;
  const bool is_alike = !disk_ && have_met && has_all_nodes_from_the_beginning() &&
                        std::ranges::none_of(schedule_.faults, hits_one);
  if (is_alike && promises_.codes().size() > 1)
    promises_.violate(Promise::documented_code, "nodes end with different codes");
}

bool Job::has_all_nodes_from_the_beginning() const {
  return schedule_.min_nodes == schedule_.nodes &&
         std::ranges::all_of(schedule_.starts, [](Duration start) { return start <= 500ms; });
}

bool Job::is_whole() const {
  return network_.is_whole() && (!etcd_ || etcd_->is_well()) && (!disk_ || disk_->is_well());
}

bool Job::is_over() const {
  return coming_ == 0 && processes_.empty();
}

// Nobody ends it, nothing is lost for good, and there are restarts for all that happens. Each fault may cost
// two: a node that is lost, and one that comes back. A static node that comes back may find the job gone.
bool Job::must_succeed() const {
  const auto is_fatal = [is_static = schedule_.backend == Backend::static_](const Fault& fault) {
    const bool ends_process = fault.kind == Kind::kill || fault.kind == Kind::power_loss ||
                              fault.kind == Kind::file_kill || fault.kind == Kind::file_power_loss;
    const bool ends_node = fault.kind == Kind::file_errors || fault.kind == Kind::file_outage ||
                           fault.kind == Kind::file_removal;
    return ends_node || fault.kind == Kind::worker_fails || fault.kind == Kind::terminate ||
           fault.kind == Kind::stop_job || (ends_process && (is_static || fault.duration == 0ms));
  };
  const bool is_elastic = schedule_.min_nodes < schedule_.max_nodes;
  const int nodes_per_machine = (schedule_.nodes + schedule_.machines - 1) / schedule_.machines;
  int losses = nodes_per_machine * static_cast<int>(schedule_.faults.size());
  // A link that comes and goes, or loses a part, loses a node again and again.
  for (const Fault& fault : schedule_.faults)
    if (fault.kind == Kind::blinking || fault.kind == Kind::loss)
      losses += static_cast<int>(fault.duration / schedule_.node_timeout);
  const bool survives = is_elastic || schedule_.max_restarts >= 2 * losses;
  // Nodes that cannot reach each other wait for the join timeout.
  Duration outage = 2 * promises_.notice_time() + 10s;
  for (const Fault& fault : schedule_.faults) outage += fault.duration;
  if (disk_ && (promises_.has_held_round() || locked_time() >= schedule_.read_timeout)) return false;
  return survives && outage < schedule_.join_timeout && std::ranges::none_of(schedule_.faults, is_fatal);
}

// Nodes that find the file locked for too long end.
Duration Job::locked_time() const {
  Duration time = {};
  for (const Fault& fault : schedule_.faults) {
    if (fault.kind == Kind::file_lock || fault.kind == Kind::file_stop) time += fault.duration;
    // What they leave behind is cut off.
    if (fault.kind == Kind::file_kill || fault.kind == Kind::file_power_loss) time += 2s;
  }
  return time;
}

Time Job::last_end() const {
  Time last = Time(1h);
  for (const Duration start : schedule_.starts) last = std::max(last, Time(1h) + start);
  for (const Fault& fault : schedule_.faults) last = std::max(last, Time(1h) + fault.at + fault.duration);
  return last;
}

void Job::cut_pair(int from, int to, bool both_ways, Duration duration) {
  network_.cut(from, to, true);
  if (both_ways) network_.cut(to, from, true);
  world_.after(duration, [this, from, to, both_ways] {
    network_.cut(from, to, false);
    if (both_ways) network_.cut(to, from, false);
  });
}

void Job::cut(const Fault& fault) {
  if (fault.kind == Kind::cut || fault.kind == Kind::cut_one_way)
    return cut_pair(schedule_.machine_of(fault.node), schedule_.machine_of(fault.other),
                    fault.kind == Kind::cut, fault.duration);
  const bool splits = fault.kind == Kind::split || fault.kind == Kind::half_split;
  const int part = splits ? fault.other : 1 << schedule_.machine_of(fault.node);
  const bool both_ways =
      fault.kind != Kind::half_split && fault.kind != Kind::muteness && fault.kind != Kind::deafness;
  for (int from = 0; from < network_.machines(); ++from) {
    for (int to = 0; to < network_.machines(); ++to) {
      if (((part >> from) & 1) == 0 || ((part >> to) & 1) != 0) continue;
      fault.kind == Kind::deafness ? cut_pair(to, from, both_ways, fault.duration)
                                   : cut_pair(from, to, both_ways, fault.duration);
    }
  }
}

void Job::blink(const Fault& fault, Duration remaining) {
  if (remaining <= 0ms) return;
  Fault dark = fault;
  dark.duration = std::min(remaining, world_.random().between(10ms, 2s));
  cut(dark);
  const Duration pause = dark.duration + world_.random().between(10ms, 1s);
  world_.after(pause, [this, fault, remaining, pause] { blink(fault, remaining - pause); });
}

void Job::kill(const Fault& fault) {
  const bool is_power = fault.kind == Kind::power_loss || fault.kind == Kind::file_power_loss;
  const int machine = schedule_.machine_of(fault.node);
  if (is_power) network_.cut_power(machine);
  for (int node = 0; node < schedule_.nodes; ++node) {
    if (is_power ? schedule_.machine_of(node) != machine : node != fault.node) continue;
    if (const auto process = processes_.find(node);
        process != processes_.end() && process->second->is_alive()) {
      process->second->die();
      if (!is_power) network_.end(process->second->loop());
      processes_.erase(process);
    }
    if (fault.duration == 0ms) continue;
    ++coming_;
    world_.after(fault.duration, [this, node, is_power] {
      if (is_power) network_.machine(schedule_.machine_of(node)).has_power = true;
      start(node);
    });
  }
}

void Job::slow_down(const Fault& fault) {
  const auto set_latencies = [this, machine = schedule_.machine_of(fault.node)](Duration latency) {
    for (int other = 0; other < network_.machines(); ++other) {
      network_.set_latency(machine, other, latency);
      network_.set_latency(other, machine, latency);
    }
  };
  set_latencies(500ms);
  world_.after(fault.duration, [set_latencies] { set_latencies(1ms); });
}

void Job::hinder_etcd(void (Etcd::*hinder)(bool), Duration duration) {
  (*etcd_.*hinder)(true);
  world_.after(duration, [this, hinder] { (*etcd_.*hinder)(false); });
}

// Returns whether it is a fault of etcd, or of the way there.
bool Job::apply_to_etcd(const Fault& fault) {
  const int machine = schedule_.machine_of(fault.node);
  const int etcd = schedule_.etcd_machine();
  switch (fault.kind) {
    case Kind::etcd_cut:
    case Kind::etcd_deafness:
      cut_pair(machine, etcd, fault.kind == Kind::etcd_cut, fault.duration);
      return true;
    case Kind::etcd_muteness:
      cut_pair(etcd, machine, false, fault.duration);
      return true;
    case Kind::etcd_away:
      etcd_->kill();
      world_.after(fault.duration, [this] { etcd_->start(); });
      return true;
    case Kind::etcd_pause:
      hinder_etcd(&Etcd::pause, fault.duration);
      return true;
    case Kind::etcd_slowness:
      hinder_etcd(&Etcd::slow_down, fault.duration);
      return true;
    case Kind::etcd_errors:
      hinder_etcd(&Etcd::fail, fault.duration);
      return true;
    case Kind::etcd_lapse:
      etcd_->expire_leases();
      return true;
    default:
      return false;
  }
}

// What a process does next with the file goes wrong.
bool Job::apply_to_file(const Fault& fault) {
  Process* process = alive(fault.node);
  switch (fault.kind) {
    case Kind::file_lock:
      disk_->set_locked(true);
      world_.after(fault.duration, [this] { disk_->set_locked(false); });
      return true;
    case Kind::file_stop:
      if (process != nullptr)
        process->disk_use().on_lock = [this, fault, process] {
          stop(*process, fault.duration);
          world_.after(fault.duration, [this, node = fault.node] {
            if (Process* stopped = alive(node)) disk_->unlock(stopped->disk_use());
          });
        };
      return true;
    case Kind::file_kill:
    case Kind::file_power_loss:
      if (process != nullptr)
        process->disk_use().on_append = [this, fault, process] {
          process->loop().pause(true);
          world_.after(0ms, [this, fault] { kill(fault); });
        };
      return true;
    case Kind::file_errors:
    case Kind::file_outage:
      set_disk_error(fault);
      return true;
    case Kind::file_removal:
      disk_->remove(fault.other % 2 == 1);
      return true;
    default:
      return false;
  }
}

void Job::set_disk_error(const Fault& fault) {
  constexpr std::array kErrors = {std::errc::io_error, std::errc::no_space_on_device,
                                  std::errc::no_such_file_or_directory, static_cast<std::errc>(ESTALE)};
  for (int machine = 0; machine < schedule_.machines; ++machine) {
    if (fault.kind == Kind::file_errors && machine != schedule_.machine_of(fault.node)) continue;
    disk_->set_error(machine, kErrors.at(static_cast<std::size_t>(fault.other) % kErrors.size()));
    world_.after(fault.duration, [this, machine] { disk_->set_error(machine, std::errc()); });
  }
}

Process* Job::alive(int node) const {
  const auto entry = processes_.find(node);
  return entry == processes_.end() || !entry->second->is_alive() ? nullptr : entry->second.get();
}

void Job::stop(Process& process, Duration duration) {
  process.pause(true);
  world_.after(duration, [this, node = process.node()] {
    if (const auto paused = processes_.find(node);
        paused != processes_.end() && paused->second->loop().is_paused())
      paused->second->pause(false);
  });
}

void Job::apply(const Fault& fault) {
  world_.trace("fault " + to_text(fault));
  if (apply_to_etcd(fault) || apply_to_file(fault)) return;
  Process* process = alive(fault.node);
  switch (fault.kind) {
    case Kind::cut:
    case Kind::cut_one_way:
    case Kind::isolation:
    case Kind::deafness:
    case Kind::muteness:
    case Kind::split:
    case Kind::half_split:
      return cut(fault);
    case Kind::blinking:
      return blink(fault, fault.duration);
    case Kind::loss:
      network_.set_loss(30);
      return world_.after(fault.duration, [this] { network_.set_loss(0); });
    case Kind::slowness:
      return slow_down(fault);
    case Kind::kill:
    case Kind::power_loss:
      return kill(fault);
    case Kind::clock_jump:
      network_.machine(schedule_.machine_of(fault.node)).clock_skew += world_.random().between(-1h, 1h);
      return;
    default:
      break;
  }
  if (process == nullptr) return;
  if (fault.kind == Kind::worker_fails) process->fail_worker();
  if (fault.kind == Kind::terminate) process->terminate();
  if (fault.kind == Kind::stop_job) process->stop_job();
  if (fault.kind == Kind::notice) process->announce_end();
  if (fault.kind == Kind::pause) stop(*process, fault.duration);
}

Outcome simulate(const Schedule& schedule, bool with_trace) {
  return Job(schedule, with_trace).run();
}

// Drops one fault after the other, as long as the same promise is not kept without it: another one would lead
// whoever looks into the failure to another fault.
Schedule shortened(Schedule schedule) {
  const Promise promise = simulate(schedule).broken;
  for (std::size_t i = schedule.faults.size(); i > 0; --i) {
    Schedule shorter = schedule;
    shorter.faults.erase(shorter.faults.begin() + static_cast<std::ptrdiff_t>(i - 1));
    if (simulate(shorter).broken == promise) schedule = shorter;
  }
  return schedule;
}

}  // namespace simulation
