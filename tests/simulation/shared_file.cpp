// SPDX-License-Identifier: Apache-2.0
// Another body of store/shared_file.cpp, on the simulated disk.
#include "acc/store/shared_file.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "acc/store/file_log.hpp"
#include "simulation/shared_disk.hpp"

namespace acc::launcher {

using simulation::disk_use;
using simulation::DiskUse;
using simulation::SharedDisk;
using simulation::World;
using Call = SharedDisk::Call;

namespace {

// The number of the round whose keys have this, in "/torch.rendezvous.job.3/torchelastic/role_info/0".
constexpr std::string_view kRoleInfo = "/torchelastic/role_info/";

void note_round(const SharedDisk::File& file, std::string_view bytes) {
  const std::size_t end = bytes.find(kRoleInfo);
  if (end == std::string_view::npos) return;
  const std::size_t begin = bytes.rfind('.', end) + 1;
  DiskUse& use = disk_use();
  use.file_of_round = file.number;
  std::from_chars(bytes.data() + begin, bytes.data() + end, use.round);
}

}  // namespace

struct SharedFile::Impl {
  std::shared_ptr<SharedDisk::File> file = {};
};

SharedFile::SharedFile(const std::filesystem::path&, std::error_code& error)
    : impl_(std::make_unique<Impl>()) {
  error = SharedDisk::current().error_of(Call::open);
  impl_->file = SharedDisk::current().open();
}

SharedFile::~SharedFile() = default;

bool SharedFile::lock(std::error_code& error) {
  SharedDisk& disk = SharedDisk::current();
  error = disk.error_of(Call::lock);
  if (error || disk_use().has_ended || !disk.lock()) return false;
  if (auto on_lock = std::exchange(disk_use().on_lock, {})) {
    impl_->file->stopped_holder = disk_use().exists;
    on_lock();
  }
  return true;
}

SharedFile::Status SharedFile::status(std::error_code& error) const {
  error = SharedDisk::current().error_of(Call::status);
  return {.identity = {.device = 1, .number = impl_->file->identity},
          .is_regular = true,
          .size = impl_->file->bytes.size()};
}

std::string SharedFile::read(std::size_t offset, std::size_t max_size, std::error_code& error) const {
  error = SharedDisk::current().error_of(Call::read);
  const std::string& bytes = impl_->file->bytes;
  return bytes.substr(std::min(offset, bytes.size()), max_size);
}

void SharedFile::write(std::size_t offset, std::string_view bytes, std::error_code& error) {
  const simulation::Uncharged disk;
  error = SharedDisk::current().error_of(Call::write);
  auto on_append = std::exchange(disk_use().on_append, {});
  const bool is_part = error || on_append;
  const auto size = static_cast<std::int64_t>(bytes.size());
  const auto written = is_part ? World::current().random().between(std::int64_t{0}, size) : size;
  SharedDisk::File& file = *impl_->file;
  file.bytes.replace(std::min(offset, file.bytes.size()), bytes.size(),
                     bytes.substr(0, static_cast<std::size_t>(written)));
  file.is_torn = is_part && FileLog().read(file.bytes) < file.bytes.size();
  note_round(file, bytes);
  if (!on_append) return;
  disk_use().has_ended = true;
  on_append();
}

void SharedFile::truncate(std::size_t size, std::error_code& error) {
  error = SharedDisk::current().error_of(Call::truncate);
  if (error || disk_use().has_ended) return;
  impl_->file->bytes.resize(size);
  impl_->file->is_torn = false;
}

}  // namespace acc::launcher
