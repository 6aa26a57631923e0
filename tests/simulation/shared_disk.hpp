// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "acc/base/event_loop.hpp"
#include "simulation/world.hpp"

namespace simulation {

/// Of a process: what it does with the disk.
struct DiskUse {
  /// Expires with the process.
  std::shared_ptr<bool> exists = std::make_shared<bool>(true);
  /// Called when it has locked the file the next time: it is stopped there.
  Callback<void()> on_lock = {};
  /// Called when it has written a part of what it appends the next time: it ends there.
  Callback<void()> on_append = {};
  /// It has ended in the middle of what it did, which goes on in this program, but not in the simulated
  /// world.
  bool has_ended = false;
  /// It has learned that the file cannot be used.
  bool has_lost_file = false;
  /// The one that it has opened first.
  std::shared_ptr<void> file = {};
  /// In which file, and in which round there, it told the number of its workers last.
  std::int64_t file_of_round = 0;
  std::int64_t round = 0;
  /// How often it has opened the file since `second_begin`.
  std::size_t opens = 0;
  Time second_begin = {};
};

/// A disk that all machines see, with the one file in which nodes meet. A lock is the server's, as flock is
/// on NFS since Linux 2.6.12: it lasts as long as its process, and who has it reads what others have written.
/// Appends, once they are done, stay. A machine without power loses its lock at once, not after the server's
/// lease, which is as if somebody else had the file locked.
///
/// Not modelled: locks that each machine has for itself (`nolock`, `local_lock=flock`), so that reads are
/// stale and appends overlap; and a server that does not answer, where the kernel stops the process in the
/// call: it is as one that is stopped by a signal.
class SharedDisk {
 public:
  struct File {
    std::int64_t number = 0;
    /// What the file system says; it may give it to another file when this one is removed.
    std::uint64_t identity = 0;
    std::string bytes = {};
    /// The last entry is a part of one.
    bool is_torn = false;
    /// DiskUse::exists of the process that was stopped while it had it locked.
    std::weak_ptr<bool> stopped_holder = {};
  };

  /// Processes that wait for longer than `max_wait` give up.
  explicit SharedDisk(Duration max_wait);
  ~SharedDisk();
  SharedDisk(const SharedDisk&) = delete;
  SharedDisk& operator=(const SharedDisk&) = delete;
  static SharedDisk& current();

  /// Somebody else has the file locked; calls count.
  void set_locked(bool locks) { lockers_ += locks ? 1 : -1; }
  /// Some operations of this machine fail with `error`; none: they do not any more.
  void set_error(int machine, std::errc error) { errors_[machine] = error; }
  /// The file is removed, or replaced by an empty one if `keeps_identity`.
  void remove(bool keeps_identity);
  /// The process that was stopped while it had the file locked continues.
  void unlock(const DiskUse& use);

  bool is_locked() const { return lockers_ > 0 || !file_->stopped_holder.expired(); }
  /// Nobody can use it: it is locked, or torn.
  bool is_blocked() const { return is_locked() || file_->is_torn; }
  /// Since when that is so; now if it is not.
  Time blocked_since() const { return is_blocked() ? blocked_since_ : World::current().now(); }
  bool is_well() const;
  /// After each event.
  void check();
  /// How often a process has opened the file in each second since the last call; 0: no second is over.
  static std::size_t rate_of_opens(DiskUse& use);

  // Calls of a process.
  enum class Call { open, lock, status, read, write, truncate };
  std::shared_ptr<File> open();
  /// False: the file is locked.
  bool lock();
  std::error_code error_of(Call call);

 private:
  Duration max_wait_;
  std::shared_ptr<File> file_ = std::make_shared<File>();
  int lockers_ = 0;
  std::map<int, std::errc> errors_ = {};
  bool was_blocked_ = false;
  Time blocked_since_ = {};
  /// The same with moments in which not everybody who waits gets the lock.
  Time hindered_since_ = {};
  Time usable_since_ = {};
};

/// That of the process that runs.
DiskUse& disk_use();

}  // namespace simulation
