// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

namespace acc::launcher {

/// A file on a disk that several machines share, opened once. Calls set `error` to 0 or to that of the
/// system.
class SharedFile {
 public:
  /// Identifies a file: one created anew under the same name differs.
  struct Identity {
    std::uint64_t device = 0;
    std::uint64_t number = 0;

    bool operator==(const Identity&) const = default;
  };
  struct Status {
    Identity identity = {};
    bool is_regular = false;
    std::size_t size = 0;
  };

  /// Opens the file, and creates it if there is none.
  SharedFile(const std::filesystem::path& path, std::error_code& error);
  /// Unlocks it.
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  /// Locks the file for all processes that do so (flock). Returns false without an error if another has it
  /// locked.
  bool lock(std::error_code& error);
  Status status(std::error_code& error) const;
  /// What is there from `offset` on, of at most `max_size` bytes; empty at the end of the file.
  std::string read(std::size_t offset, std::size_t max_size, std::error_code& error) const;
  /// Writes from `offset` on. With an error, some of the bytes may be written.
  void write(std::size_t offset, std::string_view bytes, std::error_code& error);
  /// Cuts off what is beyond `size`.
  void truncate(std::size_t size, std::error_code& error);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc::launcher
