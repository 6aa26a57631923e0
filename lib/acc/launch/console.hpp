// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "acc/base/descriptor.hpp"

namespace acc {

/// One of acc's own output streams, written without ever blocking and without changing the file description
/// that acc shares with the shell. What the reader does not take yet is kept in order.
class Console {
 public:
  /// `fd` must stay open.
  explicit Console(int fd);

  /// Writes what can be written now and keeps the rest. When the reader is gone, drops everything.
  void write(std::string_view text);

  /// Goes on with what is kept. True: nothing is kept any more.
  bool flush();

  std::size_t backlog() const { return kept_.size() - written_; }

  /// A descriptor that becomes readable when the console can be written to. An event loop may do with it what
  /// it likes: asio makes what it waits for non-blocking, and that must not happen to the console itself.
  Descriptor make_writable_event() const;

 private:
  enum class Kind {
    blocks_never,     ///< a file, /dev/null
    own_description,  ///< a pipe or terminal that we could open once more, non-blocking
    socket,
    shared,  ///< a pipe that cannot be opened again: small pieces, each only when there is room
  };

  std::size_t write_some(std::string_view text);
  int native_handle() const { return own_ ? own_.get() : fd_; }

  int fd_;
  Descriptor own_ = {};
  Kind kind_ = Kind::blocks_never;
  bool broken_ = false;
  std::string kept_ = {};
  std::size_t written_ = 0;
};

/// Both are the same open terminal, pipe or file, so that the order of what is written to them matters.
bool same_file(int one, int other);

}  // namespace acc
