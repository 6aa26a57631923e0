// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/cpu/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

namespace acc::detail {
namespace {

constexpr std::size_t kPage = 4096;

std::system_error failed(const char* what) {
  return {errno, std::generic_category(), what};
}

}  // namespace

std::size_t Segment::control_bytes(int ranks) {
  const std::size_t bytes = sizeof(Control) * static_cast<std::size_t>(ranks);
  return (bytes + kPage - 1) / kPage * kPage;
}

std::size_t Segment::bytes_for(int ranks) {
  return control_bytes(ranks) + kChunkBytes * kSlots * static_cast<std::size_t>(ranks);
}

Descriptor Segment::create(int ranks) {
  Descriptor memory(::memfd_create("acc", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) throw failed("memfd_create");
  // It counts as a file, and growing a file beyond the limit would be a SIGXFSZ.
  rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes_for(ranks)) {
    errno = EFBIG;
    throw failed("the limit of a file's size");
  }
  if (::ftruncate(memory.get(), static_cast<off_t>(bytes_for(ranks))) != 0) throw failed("ftruncate");
  // Accessing memory that another process has cut off would be a SIGBUS.
  if (::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    throw failed("fcntl");
  const Segment segment(memory, ranks);
  for (int rank = 0; rank < ranks; ++rank) segment.bell(rank).waiting_for = RankBell::kNobody;
  return memory;
}

Segment::Segment(const Descriptor& memory, int ranks) : ranks_(ranks) {
  struct stat status = {};
  if (::fstat(memory.get(), &status) != 0) throw failed("fstat");
  if (static_cast<std::size_t>(status.st_size) != bytes_for(ranks)) {
    errno = EINVAL;
    throw failed("the size of the shared memory");
  }
  void* const mapped = platform::map(memory, bytes_for(ranks));
  if (mapped == MAP_FAILED) throw failed("mmap");
  memory_ = static_cast<std::byte*>(mapped);
}

Segment::~Segment() {
  platform::unmap(memory_, bytes_for(ranks_));
}

Segment::Control& Segment::control(int rank) const {
  return reinterpret_cast<Control*>(memory_)[rank];
}

std::byte* Segment::slot(int rank, std::uint64_t chunk) const {
  return memory_ + control_bytes(ranks_) +
         kChunkBytes * (kSlots * static_cast<std::size_t>(rank) + chunk % kSlots);
}

}  // namespace acc::detail
