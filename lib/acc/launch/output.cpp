// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/limit_hint.hpp"
#include "acc/launch/console.hpp"
#include "acc/launch/error_text.hpp"
#include "acc/launch/line_prefix.hpp"
#include "acc/launch/log_file.hpp"
#include "acc/launch/relay.hpp"

namespace acc::launcher {
namespace {

bool admits(const std::vector<int>& filter, int number) {
  return filter.empty() || std::ranges::find(filter, number) != filter.end();
}

}  // namespace

StreamPlan plan_stream(const OutputPlan& output, WorkerNumbers worker, Streams stream, bool has_folder) {
  // Without logs torchrun ignores its filter too.
  const bool listed = admits(output.ranks_filter, worker.rank) &&
                      (output.no_logs || admits(output.local_ranks_filter, worker.local_rank));
  const bool files = has_folder && !output.no_logs;
  const bool tee = files && has(output.tee.streams_of(worker.local_rank), stream);
  const bool redirected = files && has(output.redirects.streams_of(worker.local_rank), stream);
  const bool console = listed && (tee || !redirected);
  return {.file = tee || redirected,
          .console = console,
          .prefixed = listed && tee,
          .stamped = console && output.log_timestamps};
}

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = std::size_t{64} << 10U;

Descriptor open_log(const fs::path& file) {
  Descriptor log(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
  if (!log) {
    throw Error({.kind = ErrorKind::system,
                 .what = std::string("cannot write the log: ") + std::strerror(errno),
                 .where = file.string(),
                 .hint = limit_hint(errno)});
  }
  return log;
}

Descriptor duplicate(const Descriptor& fd) {
  return Descriptor(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

bool plain(const StreamPlan& stream) {
  return stream == StreamPlan{.console = true};
}

using Kind = StreamDestination::Kind;

// After more lines than this, earlier ones do not count as visible.
constexpr std::uint64_t kMaxLinesSince = 10;

StreamDestination destination_of(const StreamPlan& stream, const fs::path& log, Kind default_kind) {
  if (stream.file) return {Kind::file, log};
  return {default_kind, {}};
}

/// The output of a worker in the last attempt.
struct WorkerOutput {
  StreamDestinations destinations = {};
  OutputRing ring = {};
  /// The end of its standard error, unless that goes to `error_log` alone.
  Tail tail = {};
  fs::path error_log = {};
  /// What goes to a file alone, if it is watched: the file may get another name, or none.
  Descriptor out_file = {};
  Descriptor err_file = {};
  /// The line count of the sink after its last standard error, if that went to a terminal.
  std::optional<std::uint64_t> shown_at = {};
};

}  // namespace

struct Output::Impl {
  using Record = std::function<void(std::string_view)>;

  Impl(boost::asio::io_context& on_loop, OutputPlan output, int count, Consoles fds);

  Channel open_channel(int console);
  struct StreamRequest {
    StreamPlan plan = {};
    int console = 1;
    fs::path log = {};
    std::string prefix = {};
    Tail* tail = nullptr;
    Record record = {};
    std::shared_ptr<FilteredLog> copy = {};
  };

  WorkerStreams open(int local_rank, const fs::path& folder, const std::string& line_prefix,
                     std::optional<int> rank);
  Descriptor open_stream(StreamRequest stream);
  Record record_of(WorkerOutput& worker, StreamName stream, const StreamPlan& plan);
  const WorkerOutput* find(int local_rank) const;
  OutputSink& own_sink() { return err ? *err : out; }
  void open_filtered(const fs::path& attempt);
  void add_relay(Descriptor from, bool terminal, RelayTarget target);
  void on_room();
  void on_full_log(const std::string& reason);
  void on_trouble(bool of_out, Console::State state, int error);
  OutputSink::Handlers handlers(bool of_out);
  std::string name_of(bool of_out) const;

  boost::asio::io_context& loop;
  OutputPlan plan;
  int workers;
  Consoles consoles;
  bool one_console;
  OutputSink out;
  std::optional<OutputSink> err;  // absent when both are one
  std::unique_ptr<char[]> buffer = std::make_unique_for_overwrite<char[]>(kBufferBytes);
  std::vector<std::shared_ptr<Relay>> relays = {};
  /// By local rank.
  std::map<int, WorkerOutput> outputs = {};
  /// Of the current attempt; null without filters.
  std::shared_ptr<FilteredLog> filtered_out = {};
  std::shared_ptr<FilteredLog> filtered_err = {};
  std::function<void(std::string)> warn = [](const std::string&) {};
  std::function<void()> written = [] {};
  std::function<void()> reader_lost = [] {};
  std::function<void()> grown = [] {};
  bool finishing = false;
  bool warned = false;
  bool has_ended_attempt = false;
  /// Whether some output goes to this console only.
  bool out_is_needed = false;
  bool err_is_needed = false;
  Lost lost = {};

  OutputSink& sink_of(int console) { return console == consoles.out || !err ? out : *err; }
};

Output::Impl::Impl(boost::asio::io_context& on_loop, OutputPlan output, int count, Consoles fds)
    : loop(on_loop),
      plan(std::move(output)),
      workers(count),
      consoles(fds),
      one_console(same_file(fds.out, fds.err)),
      out(on_loop, fds.out, handlers(true)) {
  if (!one_console) err.emplace(on_loop, fds.err, handlers(false));
}

// A pseudo-terminal where acc has a terminal, so that isatty(3) is true in the worker.
Channel Output::Impl::open_channel(int console) {
  if (sink_of(console).is_terminal()) {
    if (auto terminal = make_pseudo_terminal(console)) return std::move(*terminal);
  }
  return make_pipe();
}

Descriptor Output::Impl::open_stream(StreamRequest stream) {
  const StreamPlan& way = stream.plan;
  if (way.file && !way.console) return open_log(stream.log);
  if (!way.console && stream.tail == nullptr) return Descriptor(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  RelayTarget target = {.sink = way.console ? &sink_of(stream.console) : nullptr,
                        .tail = stream.tail,
                        .record = std::move(stream.record)};
  if (way.file) target.log = LogFile(open_log(stream.log));
  if (way.prefixed || way.stamped) {
    LinePrefixer::Options options;
    if (way.stamped) options.stamp = [] { return timestamp(std::chrono::system_clock::now()) + ' '; };
    if (way.prefixed) options.copy = stream.copy;
    target.prefixer.emplace(way.prefixed ? stream.prefix : "", std::move(options));
  }
  if (way.console && !way.file) (&sink_of(stream.console) == &out ? out_is_needed : err_is_needed) = true;
  Channel channel = plain(way) ? open_channel(stream.console) : make_pipe();
  add_relay(std::move(channel.ours), channel.terminal, std::move(target));
  return std::move(channel.workers);
}

Output::Impl::Record Output::Impl::record_of(WorkerOutput& worker, StreamName stream, const StreamPlan& way) {
  const bool on_terminal = way.console && stream == StreamName::err && own_sink().is_terminal();
  return [this, &worker, stream, on_terminal](std::string_view chunk) {
    worker.ring.append(stream, chunk);
    if (on_terminal)
      worker.shown_at = own_sink().lines() + static_cast<std::uint64_t>(std::ranges::count(chunk, '\n'));
    grown();
  };
}

const WorkerOutput* Output::Impl::find(int local_rank) const {
  const auto output = outputs.find(local_rank);
  return output == outputs.end() ? nullptr : &output->second;
}

// Created even when no line matches, as torchrun does.
void Output::Impl::open_filtered(const fs::path& attempt) {
  const auto open = [&](std::shared_ptr<FilteredLog>& log, const std::vector<std::string>& words,
                        const char* name) {
    if (log || words.empty() || plan.no_logs) return;
    log = std::make_shared<FilteredLog>(open_log(attempt / name), words,
                                        [this](const std::string& reason) { on_full_log(reason); });
  };
  open(filtered_out, plan.duplicate_stdout_filters, "filtered_stdout.log");
  open(filtered_err, plan.duplicate_stderr_filters, "filtered_stderr.log");
}

void Output::Impl::add_relay(Descriptor from, bool terminal, RelayTarget target) {
  target.on_full_log = [this](const std::string& reason) { on_full_log(reason); };
  target.on_lost = [this](std::uint64_t bytes) { lost.bytes += bytes; };
  relays.push_back(std::make_shared<Relay>(loop, std::move(from), terminal, std::move(target),
                                           std::span(buffer.get(), kBufferBytes)));
  relays.back()->start();
}

void Output::Impl::on_room() {
  for (const auto& relay : relays) relay->start();
  if (!finishing || out.has_to_wait() || (err && err->has_to_wait())) return;
  finishing = false;
  written();
}

void Output::Impl::on_full_log(const std::string& reason) {
  lost.reason = reason;
  if (!std::exchange(warned, true)) warn("a log file cannot be written: " + reason + "; acc keeps trying");
}

OutputSink::Handlers Output::Impl::handlers(bool of_out) {
  return {
      .on_room = [this] { on_room(); },
      .on_trouble = [this, of_out](Console::State state, int error) { on_trouble(of_out, state, error); }};
}

std::string Output::Impl::name_of(bool of_out) const {
  return one_console ? "the output" : of_out ? "standard output" : "standard error";
}

void Output::Impl::on_trouble(bool of_out, Console::State state, int error) {
  if (state == Console::State::full) {
    lost.reason = std::strerror(error);
    warn(name_of(of_out) + " cannot be written: " + lost.reason + "; acc keeps trying");
  } else if (state == Console::State::no_reader) {
    if (of_out ? out_is_needed : err_is_needed) return reader_lost();
    warn("the reader of " + name_of(of_out) + " is gone; the log files still get it");
  }
}

Output::Output(boost::asio::io_context& loop, const OutputPlan& plan, int workers, Consoles consoles)
    : impl_(std::make_unique<Impl>(loop, plan, workers, consoles)) {}

Output::~Output() = default;

void Output::on_warning(std::function<void(std::string)> warn) {
  impl_->warn = std::move(warn);
}
void Output::on_written(std::function<void()> written) {
  impl_->written = std::move(written);
}

void Output::on_reader_lost(std::function<void()> lost) {
  impl_->reader_lost = std::move(lost);
}

void Output::on_growth(std::function<void()> grown) {
  impl_->grown = std::move(grown);
}

// A disk that has become full does not end a job that runs.
WorkerStreams Output::open(int local_rank, const fs::path& folder, const std::string& line_prefix,
                           std::optional<int> rank) {
  try {
    return impl_->open(local_rank, folder, line_prefix, rank);
  } catch (const Error& error) {
    if (folder.empty() || !impl_->has_ended_attempt) throw;
    impl_->warn(fmt::format("{}; its worker has no log files in this attempt", error.what()));
    return impl_->open(local_rank, {}, line_prefix, rank);
  }
}

WorkerStreams Output::Impl::open(int local_rank, const fs::path& folder, const std::string& line_prefix,
                                 std::optional<int> rank) {
  const bool has_folder = !folder.empty();
  const WorkerNumbers numbers = {.local_rank = plan.first_local_rank + local_rank,
                                 .rank = rank.value_or(local_rank)};
  const StreamPlan out_plan = plan_stream(plan, numbers, Streams::out, has_folder);
  const StreamPlan err_plan = plan_stream(plan, numbers, Streams::err, has_folder);
  if (has_folder) open_filtered(folder.parent_path());
  const fs::path log = folder / "stdout.log";
  const fs::path error_log = folder / "stderr.log";
  WorkerOutput& worker = outputs[local_rank] = {};
  // Output that passes through us has its tail in memory, even when the disk is full.
  if (err_plan.file && !err_plan.console) worker.error_log = error_log;

  WorkerStreams streams;
  streams.err = open_stream({.plan = err_plan,
                             .console = consoles.err,
                             .log = error_log,
                             .prefix = line_prefix,
                             .tail = &worker.tail,
                             .record = record_of(worker, StreamName::err, err_plan),
                             .copy = filtered_err});
  if (one_console && plain(out_plan) && plain(err_plan)) {
    streams.out = duplicate(streams.err);  // one channel for both keeps their order
  } else if (workers > 1 || plan.observed || !plain(out_plan)) {
    streams.out = open_stream({.plan = out_plan,
                               .console = consoles.out,
                               .log = log,
                               .prefix = line_prefix,
                               .record = record_of(worker, StreamName::out, out_plan),
                               .copy = filtered_out});
  }
  if (plan.observed) {
    if (out_plan.file && !out_plan.console) worker.out_file = duplicate(streams.out);
    if (err_plan.file && !err_plan.console) worker.err_file = duplicate(streams.err);
  }
  const Kind kind_of_stdout = !streams.out ? Kind::passed : out_plan.console ? Kind::memory : Kind::discarded;
  worker.destinations = {destination_of(out_plan, log, kind_of_stdout),
                         destination_of(err_plan, error_log, Kind::memory)};
  return streams;
}

void Output::end_attempt() {
  impl_->has_ended_attempt = true;
  for (const auto& relay : impl_->relays) relay->finish();
  impl_->relays.clear();
  for (auto* log : {&impl_->filtered_out, &impl_->filtered_err}) {
    if (*log) impl_->lost.bytes += (*log)->close();
    log->reset();
  }
}

std::string Output::stderr_tail(int local_rank) const {
  const WorkerOutput* worker = impl_->find(local_rank);
  if (worker == nullptr) return {};
  if (worker->error_log.empty()) return worker->tail.lines();
  if (!worker->err_file) return tail_of_file(worker->error_log);
  return tail_of_file("/proc/self/fd/" + std::to_string(worker->err_file.get()));
}

bool Output::is_just_above(int local_rank) const {
  const WorkerOutput* worker = impl_->find(local_rank);
  return worker != nullptr && worker->shown_at &&
         impl_->own_sink().lines() <= *worker->shown_at + kMaxLinesSince;
}

void Output::open_untouched(int local_rank) {
  impl_->outputs[local_rank] = {};
}

StreamDestinations Output::destinations(int local_rank) const {
  const WorkerOutput* worker = impl_->find(local_rank);
  return worker == nullptr ? StreamDestinations() : worker->destinations;
}

std::uint64_t Output::written(int local_rank) const {
  const WorkerOutput* worker = impl_->find(local_rank);
  if (worker == nullptr) return 0;
  std::uint64_t bytes = worker->ring.end();
  for (const Descriptor* file : {&worker->out_file, &worker->err_file}) {
    struct stat info = {};
    if (*file && ::fstat(file->get(), &info) == 0) bytes += static_cast<std::uint64_t>(info.st_size);
  }
  return bytes;
}

const OutputRing* Output::ring(int local_rank) const {
  const WorkerOutput* worker = impl_->find(local_rank);
  return worker == nullptr ? nullptr : &worker->ring;
}

void Output::announce(std::string_view lines) {
  impl_->own_sink().announce(lines);
}

void Output::resize() {
  const auto [out, err] = impl_->consoles;
  for (const auto& relay : impl_->relays) relay->resize(::isatty(err) == 1 ? err : out);
}

Output::Lost Output::lost() {
  Lost all = impl_->lost;
  all.bytes += impl_->out.give_up();
  if (impl_->err) all.bytes += impl_->err->give_up();
  return all;
}

bool Output::finish() {
  const bool out = impl_->out.finish();
  const bool err = !impl_->err || impl_->err->finish();
  impl_->finishing = !(out && err);
  return out && err;
}

std::uint64_t Output::unread() const {
  return impl_->out.unread() + (impl_->err ? impl_->err->unread() : 0);
}

Output::Lost Output::drop() {
  Lost dropped;
  std::string readers;
  const auto drop_from = [&](OutputSink& sink, bool of_out) {
    if (!sink.has_to_wait()) return;
    dropped.bytes += sink.drop();
    readers += (readers.empty() ? "" : " and ") + impl_->name_of(of_out);
  };
  drop_from(impl_->out, true);
  if (impl_->err) drop_from(*impl_->err, false);
  if (!readers.empty()) dropped.reason = "the reader of " + readers + " has not read on in time";
  return dropped;
}

}  // namespace acc::launcher
