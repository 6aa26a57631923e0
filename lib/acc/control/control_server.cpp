// SPDX-License-Identifier: Apache-2.0
#include "acc/control/control_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/streambuf.hpp>
#include <cerrno>
#include <cstring>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/limit_hint.hpp"
#include "acc/base/log.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/base/text.hpp"
#include "acc/control/job_file.hpp"

namespace acc::launcher {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using asio::local::stream_protocol;
using boost::system::error_code;
using nlohmann::json;

constexpr std::size_t kMaxRequest = std::size_t{64} << 10U;
constexpr std::size_t kMaxSessions = 64;
// The rest is for those who look at the job or stop it.
constexpr std::ptrdiff_t kMaxFollowers = 32;
// In bytes; the kernel lowers it to what a user may have.
constexpr int kLastSendBuffer = 4 << 20;
constexpr auto kPause = std::chrono::milliseconds(100);
// How often the socket's name is looked for.
constexpr auto kLookInterval = std::chrono::seconds(10);

bool is_allowed(int connection) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

std::string line_of(const json& message) {
  // A worker's command line need not be UTF-8.
  return message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

/// A listening socket and its name in an open folder.
struct Socket {
  Descriptor folder = {};
  fs::path path = {};
  Descriptor listening = {};
  std::string name = {};
  dev_t device = 0;
  ino_t inode = 0;

  bool is(const struct stat& file) const { return file.st_dev == device && file.st_ino == inode; }

  /// It can be found by its path, which the folder may have lost.
  bool is_in_place() const {
    struct stat file = {};
    return folder && ::lstat(path.c_str(), &file) == 0 && is(file);
  }

  /// Removes it, not another one that has taken its name.
  void remove() const {
    struct stat file = {};
    if (folder && ::fstatat(folder.get(), name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 && is(file))
      ::unlinkat(folder.get(), name.c_str(), 0);
  }
};

// By /proc, since the folder's own path may be too long for sun_path.
sockaddr_un address_of(const Descriptor& folder, const std::string& name) {
  const std::string path = "/proc/self/fd/" + std::to_string(folder.get()) + "/" + name;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

// Whether somebody listens there. Does not wait.
bool is_listened_at(const Descriptor& folder, const std::string& name) {
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = address_of(folder, name);
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
         errno == EAGAIN;
}

// Binds through the open folder, which has been checked, and whose /proc path is short enough for sun_path.
Socket make_socket(Descriptor descriptor, const fs::path& folder, const std::string& id) {
  const std::string file = id + ".sock";
  Socket socket{.folder = std::move(descriptor), .path = folder / file, .name = file};
  const auto fail = [&](const char* what) {
    throw Error({.kind = ErrorKind::system,
                 .what = std::string(what) + ": " + std::strerror(errno),
                 .where = folder.string(),
                 .hint = limit_hint(errno)});
  };
  socket.listening = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.listening) fail("cannot create a socket");
  // Hidden until it listens, so that no client takes it for the socket of a dead job.
  const std::string hidden_name = "." + socket.name;
  const sockaddr_un address = address_of(socket.folder, hidden_name);
  struct stat info = {};
  ::unlinkat(socket.folder.get(), hidden_name.c_str(), 0);
  if (::bind(socket.listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::fchmodat(socket.folder.get(), hidden_name.c_str(), 0600, 0) != 0 ||
      ::listen(socket.listening.get(), SOMAXCONN) != 0 ||
      ::fstatat(socket.folder.get(), hidden_name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
      ::renameat(socket.folder.get(), hidden_name.c_str(), socket.folder.get(), socket.name.c_str()) != 0) {
    fail("cannot create the job's socket");
  }
  socket.device = info.st_dev;
  socket.inode = info.st_ino;
  return socket;
}

}  // namespace

struct ControlServer::Impl {
  class Session;

  Impl(asio::io_context& the_loop, std::vector<fs::path> the_folders, std::string the_id,
       JobHandlers the_handlers)
      : loop(the_loop),
        folders(std::move(the_folders)),
        id(std::move(the_id)),
        handlers(std::move(the_handlers)),
        acceptor(the_loop),
        pause(the_loop),
        look(the_loop) {}

  void listen(bool anew);
  void restore();
  void look_later();
  void accept();
  void accept_later();
  void remove(Session* session) {
    sessions.remove_if([&](const auto& one) { return one.get() == session; });
  }
  bool has_room();
  bool has_room_for_follower() const;

  asio::io_context& loop;
  std::vector<fs::path> folders;
  std::string id;
  JobHandlers handlers;
  Socket socket = {};
  stream_protocol::acceptor acceptor;
  RunningTimer pause;
  asio::steady_timer look;
  std::list<std::shared_ptr<Session>> sessions = {};
  std::string problem = {};
};

/// One connection.
class ControlServer::Impl::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Impl& server, stream_protocol::socket socket) : server_(server), socket_(std::move(socket)) {}

  // The next request, when the answers to those before are sent: what a client does not read takes no memory.
  void read() {
    if (!open_ || is_reading_ || awaits_nodes_ || !unsent_.empty()) return;
    is_reading_ = true;
    asio::async_read_until(
        socket_, received_, '\n', [self = shared_from_this()](error_code error, std::size_t size) {
          self->is_reading_ = false;
          if (error) return self->close();
          const std::string line(
              asio::buffers_begin(self->received_.data()),
              asio::buffers_begin(self->received_.data()) + static_cast<std::ptrdiff_t>(size));
          self->received_.consume(size);
          self->on_request(line);
          self->read();
        });
  }

  // The client still waits for a reply, for output or for the end of the job.
  bool is_busy() const { return waits_for_end_ || awaits_nodes_ || !unsent_.empty(); }

  bool is_follower() const { return follows_; }

  // Sends what is pending. For a client that does not read, one message is buffered.
  void pump() {
    while (open_) {
      if (unsent_.empty()) send_output();
      if (unsent_.empty()) return read();
      const ssize_t sent =
          ::send(socket_.native_handle(), unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent >= 0) {
        unsent_.erase(0, static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN) {
        return wait_writable();
      } else if (errno != EINTR) {
        close();
      }
    }
  }

  void worker_started(const RankView& rank) {
    if (!follows_ || !wants(rank.rank)) return;
    logs_[rank.rank] = {.local_rank = rank.local_rank};
    send({{"started", to_json(rank)}});
  }

  // The loop does not run after this: sends what the socket takes at once, with more room for the kept output
  // of a client that is behind.
  void end(int exit_code) {
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_SNDBUF, &kLastSendBuffer, sizeof kLastSendBuffer);
    pump();
    logs_.clear();
    if (waits_for_end_ && unsent_.empty()) unsent_ += line_of({{"ended", exit_code}});
    pump();
    close();
  }

  void close() {
    if (!std::exchange(open_, false)) return;
    error_code ignored;
    socket_.close(ignored);
    server_.remove(this);
  }

 private:
  void on_request(const std::string& line) {
    try {
      answer(json::parse(line));
    } catch (const json::exception&) {
      send({{"error", "invalid request"}});
    }
  }

  void answer(const json& request) {
    const std::string name = request.value("request", "");
    if (name == "view") {
      send(to_json(server_.handlers.view()));
    } else if (name == "nodes" && server_.handlers.nodes) {
      awaits_nodes_ = true;
      server_.handlers.nodes([session = weak_from_this()](const json& nodes) {
        const auto self = session.lock();
        if (!self || !self->open_) return;
        self->awaits_nodes_ = false;
        self->send(nodes);
      });
    } else if (name == "stop") {
      waits_for_end_ = true;
      send(json::object());
      server_.handlers.stop(request.value("now", false));
    } else if (name == "logs") {
      start_logs(request);
    } else if (name == "stacks") {
      send_stacks();
    } else if (name == "history") {
      const auto history = server_.handlers.history(request.at("rank"));
      send({{"history", history ? to_json(*history) : json()}});
    } else {
      send({{"error", "unknown request"}});
    }
  }

  void start_logs(const json& request) {
    const bool follows = request.value("follow", false);
    if (follows && !follows_ && !server_.has_room_for_follower())
      return send({{"error", fmt::format("{} others follow its output already", kMaxFollowers)}});
    waits_for_end_ = waits_for_end_ || follows;
    follows_ = follows;
    ranks_ = request.value("ranks", std::vector<int>());
    for (const RankView& rank : server_.handlers.view().ranks) {
      if (!wants(rank.rank)) continue;
      logs_[rank.rank] = {.local_rank = rank.local_rank};
      const OutputRing* ring = server_.handlers.output(rank.local_rank);
      if (!follows_ && ring != nullptr) logs_[rank.rank].end = ring->end();
      // The client's view may be of an attempt that has ended.
      if (follows_) unsent_ += line_of({{"started", to_json(rank)}});
    }
    if (!follows_ && logs_.empty()) unsent_ += line_of({{"end", true}});
    pump();
  }

  bool wants(int rank) const { return ranks_.empty() || std::ranges::find(ranks_, rank) != ranks_.end(); }

  // The next piece of a followed rank.
  void send_output() {
    for (auto& [rank, log] : logs_) {
      const OutputRing* ring = server_.handlers.output(log.local_rank);
      if (ring == nullptr || log.position >= log.end) continue;
      const OutputRing::Piece piece = ring->read(log.position);
      if (piece.bytes.empty()) continue;
      unsent_ = line_of({{"rank", rank},
                         {"stream", piece.stream == StreamName::out ? "stdout" : "stderr"},
                         {"skipped", piece.begin - log.position},
                         {"bytes", piece.bytes.size()}});
      unsent_ += piece.bytes;
      log.position = piece.begin + piece.bytes.size();
      return;
    }
    if (follows_ || logs_.empty()) return;
    unsent_ = line_of({{"end", true}});
    logs_.clear();
  }

  void wait_writable() {
    if (std::exchange(waiting_, true)) return;
    socket_.async_wait(stream_protocol::socket::wait_write, [self = shared_from_this()](error_code error) {
      self->waiting_ = false;
      if (!error) self->pump();
    });
  }

  void send_stacks() {
    const int fd = ::fcntl(socket_.native_handle(), F_DUPFD_CLOEXEC, 3);
    if (fd < 0) return close();
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    server_.handlers.write_stacks(Descriptor(fd));
    close();
  }

  void send(const json& message) {
    unsent_ += line_of(message);
    pump();
  }

  struct Log {
    int local_rank = 0;
    std::uint64_t position = 0;
    /// What comes later is not asked for.
    std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
  };

  Impl& server_;
  stream_protocol::socket socket_;
  asio::streambuf received_{kMaxRequest};
  std::string unsent_ = {};
  bool waiting_ = false;
  bool open_ = true;
  bool is_reading_ = false;
  /// The other nodes have been asked, and the answer is to come.
  bool awaits_nodes_ = false;
  bool waits_for_end_ = false;
  bool follows_ = false;
  std::vector<int> ranks_ = {};
  std::map<int, Log> logs_ = {};
};

// Closes the oldest idle connection if there are too many.
bool ControlServer::Impl::has_room() {
  if (sessions.size() < kMaxSessions) return true;
  const auto idle = std::ranges::find_if(sessions, [](const auto& session) { return !session->is_busy(); });
  if (idle == sessions.end()) return false;
  // Copied, since it leaves the list.  NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const std::shared_ptr<Session> oldest = *idle;
  oldest->close();
  return true;
}

bool ControlServer::Impl::has_room_for_follower() const {
  return std::ranges::count_if(sessions, [](const auto& session) { return session->is_follower(); }) <
         kMaxFollowers;
}

void ControlServer::Impl::accept() {
  acceptor.async_accept([this](error_code error, stream_protocol::socket connection) {
    if (error == asio::error::operation_aborted) return;
    if (error) return accept_later();
    if (is_allowed(connection.native_handle()) && has_room()) {
      sessions.push_back(std::make_shared<Session>(*this, std::move(connection)));
      sessions.back()->read();
    }
    accept();
  });
}

// No descriptor is left, and the client still waits: without a pause this would go round and round.
void ControlServer::Impl::accept_later() {
  pause.expires_after(kPause);
  pause.async_wait([this](error_code error) {
    if (!error) accept();
  });
}

// When it has run for a while, a job that has taken the name keeps it: both would take it in turns.
void ControlServer::Impl::listen(bool anew) {
  problem.clear();
  std::vector<std::string> reasons;
  for (const fs::path& folder : folders) {
    try {
      Descriptor descriptor = open_runtime_folder(folder, true);
      if (!descriptor) continue;
      if (anew && is_listened_at(descriptor, id + ".sock")) {
        reasons.push_back(folder.string() + ": another job of this name is there");
        continue;
      }
      socket = make_socket(std::move(descriptor), folder, id);
      acceptor.assign(stream_protocol(), socket.listening.release());
      accept();
      return;
    } catch (const std::exception& error) {
      reasons.emplace_back(error.what());
      socket = {};
    }
  }
  problem = reasons.empty() ? "no folder for its socket can be made" : join(reasons, "; ");
}

void ControlServer::Impl::restore() {
  if (socket.is_in_place()) return;
  error_code ignored;
  acceptor.close(ignored);
  pause.cancel();
  socket.remove();
  socket = {};
  listen(true);
}

void ControlServer::Impl::look_later() {
  look.expires_after(kLookInterval);
  look.async_wait([this](error_code error) {
    if (error) return;
    restore();
    look_later();
  });
}

ControlServer::ControlServer(asio::io_context& loop, const std::vector<fs::path>& folders,
                             const std::string& id, JobHandlers handlers)
    : impl_(std::make_unique<Impl>(loop, folders, id, std::move(handlers))) {
  impl_->listen(false);
  impl_->look_later();
}

ControlServer::~ControlServer() {
  impl_->socket.remove();
}

const std::string& ControlServer::problem() const {
  return impl_->problem;
}

void ControlServer::report_problem() const {
  if (!impl_->problem.empty())
    log::write(log::Level::warn, "acc ps and acc stop cannot find this job: " + impl_->problem);
}

void ControlServer::restore() {
  impl_->restore();
}

void ControlServer::output_grew() {
  // A copy, since a connection that breaks is removed from the list.
  const auto sessions = impl_->sessions;
  for (const auto& session : sessions) session->pump();
}

void ControlServer::worker_started(const RankView& rank) {
  const auto sessions = impl_->sessions;
  for (const auto& session : sessions) session->worker_started(rank);
}

void ControlServer::end(int exit_code) {
  impl_->socket.remove();
  impl_->socket.folder.reset();
  impl_->look.cancel();
  const auto sessions = impl_->sessions;
  for (const auto& session : sessions) session->end(exit_code);
}

}  // namespace acc::launcher
