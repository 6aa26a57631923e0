// SPDX-License-Identifier: Apache-2.0
#include "acc/control/log_reader.hpp"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "acc/base/error.hpp"
#include "acc/base/file_id.hpp"
#include "acc/base/printable.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

// How often files are looked at where the kernel does not tell of changes: its inotify instances, or watches,
// are used up.
constexpr int kPollMs = 500;
// How long nothing comes until that counts as silence.
constexpr auto kSilence = std::chrono::seconds(1);

const char* name_of(StreamName stream) {
  return stream == StreamName::out ? "standard output" : "standard error";
}

std::string name_of(StreamName stream, int rank) {
  return std::string(name_of(stream)) + " of rank " + std::to_string(rank);
}

StreamName stream_of(const nlohmann::json& message) {
  return message.at("stream") == "stdout" ? StreamName::out : StreamName::err;
}

}  // namespace

LogReader::LogReader(RunningJob& job, std::vector<int> ranks, OnBytes on_bytes, OnNote on_note)
    : job_(job),
      ranks_(std::move(ranks)),
      on_bytes_(std::move(on_bytes)),
      on_note_(std::move(on_note)),
      changes_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  const std::vector<RankView>& views = job_.view.ranks;
  for (const int rank : ranks_) {
    if (std::ranges::find(views, rank, &RankView::rank) != views.end()) continue;
    throw Error({.what = "job " + job_.view.id + " has no such rank on this machine",
                 .where = "rank " + std::to_string(rank),
                 .hint = "acc ps " + job_.view.id});
  }
  for (const RankView& rank : views) {
    if (wants(rank.rank)) open_rank(rank);
  }
}

namespace {

bool has_name(const Descriptor& file, const std::filesystem::path& name) {
  const auto opened = file_id(file.get());
  return opened && opened == file_id(name);
}

}  // namespace

bool LogReader::wants(int rank) const {
  return ranks_.empty() || std::ranges::find(ranks_, rank) != ranks_.end();
}

void LogReader::open_rank(const RankView& rank) {
  pids_[rank.rank] = rank.pid;
  open_stream(rank.rank, StreamName::out, rank.out);
  open_stream(rank.rank, StreamName::err, rank.err);
}

// After a restart a rank writes to other files, which may have the names of those before. Whoever begins to
// follow is also told of ranks that it knows.
void LogReader::on_started(const RankView& rank, const OnBreak& on_break) {
  if (const auto pid = pids_.find(rank.rank); pid != pids_.end() && pid->second != rank.pid) {
    read_files(on_break);
    for (const StreamName stream : {StreamName::out, StreamName::err}) on_break(rank.rank, stream);
    close_files(rank.rank);
  }
  open_rank(rank);
}

// Those of the attempt before, in which a file may have had the name that another one has now.
void LogReader::close_files(int rank) {
  std::erase_if(logs_, [&](const auto& entry) {
    const auto& [name, log] = entry;
    if (log.rank != rank && has_name(log.file, name)) return false;
    if (log.watch >= 0) ::inotify_rm_watch(changes_.get(), log.watch);
    return true;
  });
}

void LogReader::open_stream(int rank, StreamName stream, const StreamDestination& destination) {
  const auto note = [&](const std::string& text) {
    if (notes_.insert(text).second) on_note_(text);
  };
  const std::string subject = name_of(stream, rank);
  if (destination.kind == StreamDestination::Kind::passed) {
    note(subject + " is acc's own and is not kept; --tee or --redirects keeps it in a file");
  } else if (destination.kind == StreamDestination::Kind::memory) {
    kept_by_agent_.emplace(rank, stream);
  } else if (destination.kind == StreamDestination::Kind::discarded) {
    note(subject + " is filtered out and not kept; --tee or --redirects keeps it in a file");
  } else if (destination.kind == StreamDestination::Kind::file && !logs_.contains(destination.file)) {
    Log log{rank, stream, Descriptor(::open(destination.file.c_str(), O_RDONLY | O_CLOEXEC))};
    if (!log.file) {
      failed_ = true;
      const std::string reason = std::strerror(errno);
      return note(subject + " cannot be read from " + printable_line(destination.file.string()) + ": " +
                  reason);
    }
    log.watch = ::inotify_add_watch(changes_.get(), destination.file.c_str(), IN_MODIFY);
    if (log.watch < 0) poll_ms_ = kPollMs;
    logs_.emplace(destination.file, std::move(log));
  }
}

// In a file that has become shorter, as by logrotate's copytruncate, all that it has now.
off_t LogReader::remaining_in(const Log& log, const OnBreak& on_break) const {
  struct stat info = {};
  if (::fstat(log.file.get(), &info) != 0) return 0;
  const off_t position = ::lseek(log.file.get(), 0, SEEK_CUR);
  if (info.st_size >= position) return info.st_size - position;
  on_break(log.rank, log.stream);
  on_note_(name_of(log.stream, log.rank) +
           ": its log file was cut, and is read from its beginning; lines may be missing here");
  return info.st_size - ::lseek(log.file.get(), 0, SEEK_SET);
}

// Up to the present end: a rank may write faster than this is read.
void LogReader::read_files(const OnBreak& on_break) {
  std::array<char, 1U << 16U> buffer;
  for (auto& [path, log] : logs_) {
    for (off_t remaining = remaining_in(log, on_break); remaining > 0;) {
      const auto size = std::min(buffer.size(), static_cast<std::size_t>(remaining));
      const ssize_t n = ::read(log.file.get(), buffer.data(), size);
      if (n <= 0) break;
      remaining -= n;
      pass_on(log.rank, log.stream, {buffer.data(), static_cast<std::size_t>(n)});
    }
  }
}

// Skips streams with a log file: the agent sends what is tee'd, too.
void LogReader::on_piece(const nlohmann::json& message) {
  const int rank = message.at("rank");
  const StreamName stream = stream_of(message);
  const std::string bytes = job_.client.read_bytes(message.at("bytes"));
  const auto is_logged = [&](const auto& entry) {
    return entry.second.rank == rank && entry.second.stream == stream;
  };
  if (std::ranges::any_of(logs_, is_logged)) return;
  const auto skipped = message.at("skipped").get<std::uint64_t>();
  if (skipped > 0)
    on_note_("rank " + std::to_string(rank) + ": " + pluralize(skipped, "byte") +
             (skipped == 1 ? " was not kept" : " were not kept"));
  pass_on(rank, stream, bytes);
}

// Nothing is lost of a stream with a log file.
void LogReader::note_lost_end(const OnBreak& on_break) {
  if (kept_by_agent_.empty()) return;
  for (const auto& [rank, stream] : kept_by_agent_) on_break(rank, stream);
  on_note_(
      "the connection to the job has ended, and the end of its output may be missing; --tee or --redirects "
      "keeps it in a file");
}

void LogReader::pass_on(int rank, StreamName stream, std::string_view bytes) {
  last_bytes_[{rank, stream}] = std::chrono::steady_clock::now();
  on_bytes_(rank, stream, bytes);
}

void LogReader::read() {
  read_files();
  job_.client.send({{"request", "logs"}, {"ranks", ranks_}});
  while (const auto message = job_.client.read_message()) {
    if (message->contains("end")) return;
    if (message->contains("bytes")) on_piece(*message);
  }
  note_lost_end([](int, StreamName) {});
}

void LogReader::report_silence(const OnSilence& on_silence) {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(last_bytes_, [&](const auto& entry) {
    const auto& [stream, time] = entry;
    const bool is_silent = now - time >= kSilence;
    if (is_silent) on_silence(stream.first, stream.second);
    return is_silent;
  });
}

// Waits until a file has changed, the agent has sent something or a stream is silent. Returns false if that
// cannot be waited for.
bool LogReader::wait_for_change(pollfd& agent) const {
  using std::chrono::milliseconds;
  int wait_ms = poll_ms_;
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [stream, time] : last_bytes_) {
    const auto remaining = std::chrono::ceil<milliseconds>(time + kSilence - now);
    const int remaining_ms = std::max(0, static_cast<int>(remaining.count()));
    wait_ms = wait_ms < 0 ? remaining_ms : std::min(wait_ms, remaining_ms);
  }
  std::array<pollfd, 2> ready = {{{changes_.get(), POLLIN, 0}, agent}};
  const int count = ::poll(ready.data(), ready.size(), wait_ms);
  agent = ready[1];
  return count >= 0 || errno == EINTR;
}

std::optional<int> LogReader::follow(const OnSilence& on_silence, const OnBreak& on_break) {
  job_.client.send({{"request", "logs"}, {"ranks", ranks_}, {"follow", true}});
  for (;;) {
    read_files(on_break);
    report_silence(on_silence);
    pollfd agent = {.fd = job_.client.descriptor(), .events = POLLIN, .revents = 0};
    if (!job_.client.has_received() && !wait_for_change(agent)) return {};
    std::array<char, 4096> events;
    while (::read(changes_.get(), events.data(), events.size()) > 0) {
    }
    if (!job_.client.has_received() && agent.revents == 0) continue;
    const auto message = job_.client.read_message();
    if (!message || message->contains("ended")) {
      read_files(on_break);
      if (!message) note_lost_end(on_break);
      return message ? std::optional(message->at("ended").get<int>()) : std::nullopt;
    }
    if (message->contains("bytes")) on_piece(*message);
    if (message->contains("started")) on_started(rank_view_from_json(message->at("started")), on_break);
  }
}

}  // namespace acc::launcher
