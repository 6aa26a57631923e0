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

#include "acc/base/event_loop.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/store/store.hpp"

namespace acc::launcher {

/// torch's FileStore: agents meet in a file on a shared disk. As torch's own, it opens and locks (flock) the
/// file for each operation, and polls while it waits, since a network disk does not notify of changes. It
/// does not remove the file.
class FileStore : public Store {
 public:
  struct Options {
    /// A file that is locked for longer, or whose first entry is incomplete for longer, cannot be used.
    std::chrono::milliseconds timeout = std::chrono::seconds(60);
    /// How long to wait before trying a locked file again.
    std::chrono::milliseconds retry = std::chrono::milliseconds(10);
    /// How often wait() polls.
    std::chrono::milliseconds poll_interval = std::chrono::milliseconds(50);
    /// A later entry that is incomplete for longer is cut off: its writer has ended, since the file is not
    /// locked. Where locks hold on one machine only, the writer may be on another one.
    std::chrono::milliseconds writing_time = std::chrono::seconds(1);
  };

  FileStore(net::io_context& loop, std::filesystem::path file)
      : FileStore(loop, std::move(file), Options()) {}
  FileStore(net::io_context& loop, std::filesystem::path file, const Options& options);
  ~FileStore() override;

  void on_closed(std::function<void()> closed) override;
  void close() override;
  Problem loss() const override;
  std::unique_ptr<Store> open_again(RunningClock::time_point deadline,
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
