// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/store/store.hpp"

namespace boost::asio {
class io_context;
}

namespace acc::launcher {

/// torch's FileStore: agents meet in a file on a disk that all of them see. As torch's own it opens and locks
/// (flock) the file anew for each operation and looks again and again for what it waits for: a network disk
/// tells nobody of changes. The file stays when all are gone.
class FileStore : public Store {
 public:
  struct Options {
    /// A file that is locked, or whose last entry is not whole, for so long cannot be used.
    std::chrono::milliseconds timeout = std::chrono::seconds(60);
    /// How long to wait before trying a locked file again.
    std::chrono::milliseconds retry = std::chrono::milliseconds(10);
    /// How often to look for what is waited for.
    std::chrono::milliseconds look = std::chrono::milliseconds(50);
  };

  FileStore(boost::asio::io_context& loop, std::filesystem::path file) : FileStore(loop, file, Options()) {}
  FileStore(boost::asio::io_context& loop, std::filesystem::path file, const Options& options);
  ~FileStore() override;

  void on_closed(std::function<void()> closed) override;
  void close() override;
  Problem loss() const override;
  std::unique_ptr<Store> open_again(std::chrono::steady_clock::time_point deadline,
                                    std::function<void(std::optional<Error>)> opened) const override;

  void multi_set(Pairs pairs, Done handler = {}) override;
  void multi_get(std::vector<std::string> keys, Handler<Values> handler) override;
  void check(std::vector<std::string> keys, Handler<bool> handler) override;
  void add(std::string key, std::int64_t delta, Handler<std::int64_t> handler) override;
  void compare_set(std::string key, std::string expected, std::string desired,
                   Handler<std::string> handler) override;
  void delete_key(std::string key, Handler<bool> handler) override;
  void wait(std::vector<std::string> keys, std::chrono::milliseconds timeout, Done handler) override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace acc::launcher
