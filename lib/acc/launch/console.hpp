// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "acc/base/descriptor.hpp"
#include "acc/launch/backlog.hpp"

namespace acc::launcher {

/// One of acc's own output streams, written without ever blocking and without changing the file description
/// that acc shares with the shell. What the reader does not take yet is kept in order.
class Console {
 public:
  enum class State {
    good,
    /// A file whose disk takes nothing at the moment. It is tried again with all that follows; what waits for
    /// that is limited, and the rest lost.
    full,
    /// Whoever read the pipe or socket has closed it: everything is dropped.
    no_reader,
    /// It is closed, or a terminal that has hung up: everything is dropped.
    gone,
  };

  /// `fd` must stay open.
  explicit Console(int fd);

  /// Writes what can be written now and keeps the rest.
  void write(std::string_view text);

  /// Goes on with what is kept. True: nothing is kept any more.
  bool flush();

  std::size_t backlog() const { return backlog_.size(); }

  State state() const { return state_; }
  /// Why it is not good: an error number.
  int error() const { return error_; }

  /// Tries for the last time, and returns how many bytes of everything found no room in a full file.
  std::uint64_t give_up();

  /// A descriptor that becomes readable when the console can be written to. An event loop may do with it what
  /// it likes: asio makes what it waits for non-blocking, and that must not happen to the console itself.
  Descriptor make_writable_event() const;

 private:
  enum class Kind {
    file,             ///< never blocks; /dev/null too
    own_description,  ///< a pipe or terminal that we could open once more, non-blocking
    socket,
    shared,  ///< a pipe that cannot be opened again: small pieces, each only when there is room
  };

  std::size_t write_some(std::string_view text);
  void take_error(int error);
  bool is_open() const { return state_ == State::good || state_ == State::full; }
  int native_handle() const { return own_ ? own_.get() : fd_; }

  int fd_;
  Descriptor own_ = {};
  Kind kind_ = Kind::file;
  State state_ = State::good;
  int error_ = 0;
  Backlog backlog_ = {};
};

/// Both are the same open terminal, pipe or file, so that the order of what is written to them matters.
bool same_file(int one, int other);

}  // namespace acc::launcher
