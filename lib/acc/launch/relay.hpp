// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "acc/base/descriptor.hpp"
#include "acc/launch/channel.hpp"
#include "acc/launch/error_text.hpp"
#include "acc/launch/line_prefixer.hpp"
#include "acc/launch/log_file.hpp"
#include "acc/launch/output_sink.hpp"

namespace acc::launcher {

/// Where a relay carries what it reads. What is empty is left out.
struct RelayTarget {
  OutputSink* sink = nullptr;
  std::optional<LinePrefixer> prefixer = {};
  LogFile log = {};
  Tail* tail = nullptr;
  /// Gets every chunk besides.
  std::function<void(std::string_view)> record = {};
  /// The log takes nothing at the moment, for this reason.
  std::function<void(const std::string&)> on_full_log = {};
  /// So many bytes of the stream are not in the log.
  std::function<void(std::uint64_t)> on_lost = {};
};

/// Reads one stream of one worker on the event loop. `buffer` is lent for the length of a read, so that one
/// serves all relays.
class Relay : public std::enable_shared_from_this<Relay> {
 public:
  Relay(boost::asio::io_context& loop, Descriptor from, bool terminal, RelayTarget target,
        std::span<char> buffer);

  /// Reads on, if it is not waiting already and the sink takes more.
  void start();

  /// Takes what is there now and ends, also when somebody still holds the other end.
  void finish();

  void resize(int like);

 private:
  enum class State { more, drained, ended };

  State read_once();
  void pass_on(std::string_view chunk, bool drained);
  void write_log(std::string_view chunk);
  void end();

  boost::asio::posix::stream_descriptor from_;
  bool terminal_;
  RelayTarget target_;
  std::span<char> buffer_;
  int source_ = 0;
  bool waiting_ = false;
};

}  // namespace acc::launcher
