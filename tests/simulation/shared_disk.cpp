// SPDX-License-Identifier: Apache-2.0
#include "simulation/shared_disk.hpp"

#include <algorithm>

namespace simulation {

using namespace std::chrono_literals;

namespace {

SharedDisk* current_disk = nullptr;

}  // namespace

DiskUse& disk_use() {
  return acc::net::of_loop<DiskUse>();
}

SharedDisk::SharedDisk(Duration max_wait) : max_wait_(max_wait) {
  current_disk = this;
}

SharedDisk::~SharedDisk() {
  current_disk = nullptr;
}

SharedDisk& SharedDisk::current() {
  return *current_disk;
}

void SharedDisk::remove(bool keeps_identity) {
  const auto file = std::make_shared<File>();
  file->number = file_->number + 1;
  file->identity = keeps_identity ? file_->identity : static_cast<std::uint64_t>(file->number);
  file_ = file;
}

void SharedDisk::unlock(const DiskUse& use) {
  if (file_->stopped_holder.lock() == use.exists) file_->stopped_holder.reset();
}

bool SharedDisk::is_well() const {
  return !is_locked() &&
         std::ranges::all_of(errors_, [](const auto& entry) { return entry.second == std::errc(); });
}

void SharedDisk::check() {
  constexpr Duration kMoment = 200ms;
  const Time now = World::current().now();
  if (is_blocked() && !was_blocked_) {
    blocked_since_ = now;
    if (now - usable_since_ > kMoment) hindered_since_ = now;
  }
  if (!is_blocked() && was_blocked_) usable_since_ = now;
  was_blocked_ = is_blocked();
}

std::size_t SharedDisk::rate_of_opens(DiskUse& use) {
  const Time now = World::current().now();
  if (now - use.second_begin < 1s) return 0;
  const Duration time = use.second_begin == Time() ? Duration(1s) : now - use.second_begin;
  use.second_begin = now;
  return static_cast<std::size_t>(static_cast<double>(std::exchange(use.opens, 0)) /
                                  std::chrono::duration<double>(time).count());
}

std::shared_ptr<SharedDisk::File> SharedDisk::open() {
  DiskUse& use = disk_use();
  ++use.opens;
  if (!use.file) use.file = file_;
  use.has_lost_file = use.has_lost_file || use.file != file_;
  return file_;
}

// Others have it locked for moments, in which they do what takes no time here.
bool SharedDisk::lock() {
  if (is_blocked() && World::current().now() - hindered_since_ >= max_wait_) disk_use().has_lost_file = true;
  return !is_locked() && !World::current().random().chance(1);
}

std::error_code SharedDisk::error_of(Call call) {
  const auto entry = errors_.find(World::current().running->machine);
  if (entry == errors_.end() || entry->second == std::errc()) return {};
  const std::errc error = entry->second;
  const bool is_full = error == std::errc::no_space_on_device;
  const bool is_gone = error == std::errc::no_such_file_or_directory;
  if (is_full && call != Call::write) return {};
  if (is_gone && call != Call::open) return {};
  if (!is_full && !is_gone && !World::current().random().chance(30)) return {};
  disk_use().has_lost_file = true;
  return std::make_error_code(error);
}

}  // namespace simulation
