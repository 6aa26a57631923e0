// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "acc/base/files.hpp"
#include "acc/launch/line_mixer.hpp"
#include "acc/launch/log_file.hpp"

namespace acc::launcher {

/// Opens standard streams that are closed, on /dev/null, so that no pipe gets one of their numbers.
void open_standard_streams();

/// One of acc's own output streams, written without blocking and without changing the file description that
/// acc shares with the shell (O_NONBLOCK would affect both). Text that cannot be written yet is buffered.
class Console {
 public:
  enum class State {
    good,
    /// A file whose disk is full. Each later write tries again; the buffer is limited, the rest is lost.
    full,
    /// The reader of the pipe or socket has closed it: everything is dropped.
    no_reader,
    /// The descriptor is closed, or the terminal has hung up: everything is dropped.
    gone,
  };

  /// `fd` must stay open.
  explicit Console(int fd);

  /// Writes what can be written now and buffers the rest.
  void write(std::string_view text);

  /// Continues with the buffered text. Returns true when all is written.
  bool flush();

  std::size_t backlog() const { return backlog_.size(); }

  /// The backlog, and what is still in a pipe.
  std::size_t unread() const;

  State state() const { return state_; }
  /// The errno value behind the state.
  int error() const { return error_; }

  /// Tries once more and returns the number of bytes lost to a full disk.
  std::uint64_t give_up();

  /// Drops what is buffered and returns its size.
  std::size_t drop();

  /// An epoll descriptor that becomes readable when the console can be written to. Asio makes the descriptors
  /// it waits for non-blocking, which must not happen to the console itself.
  Descriptor make_writable_event() const;

 private:
  enum class Kind {
    file,             ///< never blocks; /dev/null too
    own_description,  ///< a pipe or terminal that we could open again, non-blocking
    socket,
    shared,  ///< a pipe that cannot be opened again: small writes, each after poll()
  };

  std::size_t write_some(std::string_view text);
  void on_error(int error);
  bool is_open() const { return state_ == State::good || state_ == State::full; }
  int native_handle() const { return descriptor_ ? descriptor_.get() : fd_; }

  int fd_;
  Descriptor descriptor_ = {};
  Kind kind_ = Kind::file;
  State state_ = State::good;
  int error_ = 0;
  Backlog backlog_ = {};
};

/// `5 bytes of output are lost: No space left on device`; empty if none are.
std::string lost_output_text(std::uint64_t bytes, const std::string& reason);

/// Whether both refer to the same terminal, pipe or file, so that the order of writes to them matters.
bool same_file(int first, int second);

/// A console on the event loop that merges the lines of many workers.
class OutputSink {
 public:
  struct Handlers {
    /// The sink accepts input again, or has written everything.
    std::function<void()> on_room = [] {};
    /// The console has entered this state, with its errno value; called once for each state.
    std::function<void(Console::State state, int error)> on_trouble = [](Console::State, int) {};
  };

  OutputSink(boost::asio::io_context& loop, int fd, Handlers handlers);

  int add_source() { return mixer_.add_source(); }
  void feed(int source, std::string_view chunk, bool drained);
  void close_source(int source);
  void announce(std::string_view lines);
  /// Writes everything now, unfinished lines too. Returns false when it has to wait for the reader.
  bool finish();

  /// Whether the source may be fed; after false it should not be read until `on_room`.
  bool wants(int source);
  /// The console is a terminal.
  bool is_terminal() const { return terminal_; }
  /// The number of lines fed to a terminal.
  std::uint64_t lines() const { return lines_; }

  /// Text is waiting for the reader of the console.
  bool has_to_wait() const;

  /// The number of bytes that wait for the reader.
  std::size_t unread() const { return has_to_wait() ? console_.unread() : 0; }

  /// Tries once more and returns the number of bytes lost to a full disk.
  std::uint64_t give_up() { return console_.give_up(); }
  /// Drops what the reader has not read and returns its size.
  std::size_t drop() { return console_.drop(); }
  /// The errno value behind the last trouble.
  int error() const { return console_.error(); }

 private:
  bool takes_more() const;
  void after_change();
  void wait_writable();
  void wait_deadline();

  Console console_;
  LineMixer mixer_;
  boost::asio::posix::stream_descriptor writable_;
  boost::asio::steady_timer timer_;
  Handlers handlers_;
  bool terminal_;
  std::uint64_t lines_ = 0;
  std::set<Console::State> reported_ = {};
  bool waiting_writable_ = false;
  /// wants() has returned false.
  bool stalled_ = false;
};

}  // namespace acc::launcher
