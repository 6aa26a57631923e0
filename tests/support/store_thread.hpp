// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

#include "acc/store/server.hpp"

namespace acc::test {

using namespace launcher;

/// A store on an event loop in a thread of its own.
class StoreThread {
 public:
  explicit StoreThread(StoreServerOptions options = {})
      : server_(std::make_unique<StoreServer>(loop_, std::move(options))), thread_([this] { loop_.run(); }) {}
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;
  ~StoreThread() {
    on_loop([this] { server_.reset(); });
    thread_.join();
  }

  std::uint16_t port() const { return server_->port(); }
  void reset() {
    on_loop([this] { server_->reset(); });
  }
  void serve(const StoreClients& clients) {
    on_loop([&] { server_->serve(clients); });
  }
  std::size_t connections() {
    return on_loop([this] { return server_->connections(); });
  }

 private:
  template <typename Work>
  std::invoke_result_t<Work> on_loop(Work work) {
    std::packaged_task<std::invoke_result_t<Work>()> task(std::move(work));
    auto result = task.get_future();
    boost::asio::post(loop_, std::move(task));
    return result.get();
  }

  boost::asio::io_context loop_{1};
  std::unique_ptr<StoreServer> server_;
  std::thread thread_;
};

}  // namespace acc::test
