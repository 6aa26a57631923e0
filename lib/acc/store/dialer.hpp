// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace acc::launcher {

/// Where a store is to be found, and how long to look for it.
struct StoreAddress {
  std::string host = "127.0.0.1";  ///< a name or an address, v4 or v6
  std::uint16_t port = 0;

  friend bool operator==(const StoreAddress&, const StoreAddress&) = default;
};

/// `host:port`, a v6 address in brackets.
std::string to_string(const StoreAddress& address);

/// Connects to a store, and tries again, a little later each time, until one answers or the time is over.
/// Nothing counts as a store that does not answer a first question: a port may be open before its program
/// listens to anyone.
class Dialer : public std::enable_shared_from_this<Dialer> {
 public:
  /// Why a try failed, in words.
  using Failed = std::function<void(const std::string& why)>;
  /// The connection, or absent with the reason of the last try.
  using Done = std::function<void(std::optional<boost::asio::ip::tcp::socket>, const std::string& why)>;

  explicit Dialer(boost::asio::io_context& loop);

  /// Calls `failed` after each try in vain and `done` once, never from within.
  void start(StoreAddress address, std::chrono::steady_clock::time_point deadline, Failed failed, Done done);
  /// No handler is called any more.
  void cancel();

 private:
  void try_once();
  void resolve();
  void connect(const boost::asio::ip::tcp::resolver::results_type& endpoints);
  void greet();
  void failed(std::string why);
  void finish(std::optional<boost::asio::ip::tcp::socket> socket, const std::string& why);
  /// Whether a handler of try number `attempt` comes too late to matter.
  bool stale(std::uint64_t attempt) const { return attempt != attempt_ || !done_; }

  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer limit_;  // of one try
  boost::asio::steady_timer pause_;
  StoreAddress address_ = {};
  std::chrono::steady_clock::time_point deadline_ = {};
  std::chrono::milliseconds next_pause_ = {};
  Failed failed_ = {};
  Done done_ = {};
  std::uint64_t attempt_ = 0;
  std::string greeting_ = {};
  char answer_ = 0;
};

}  // namespace acc::launcher
