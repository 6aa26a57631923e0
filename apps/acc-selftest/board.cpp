// SPDX-License-Identifier: Apache-2.0
#include "board.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "acc/base/descriptor.hpp"

namespace acc::selftest {
namespace {

// Word 0 is the claim; then come pid and step of each rank.
std::size_t word_of(int local_rank) {
  return 1 + 2 * static_cast<std::size_t>(local_rank);
}

}  // namespace

Board::Board(const std::filesystem::path& file, int ranks) {
  if (file.empty()) return;
  const Descriptor opened(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  const std::size_t bytes = word_of(ranks) * sizeof(std::int32_t);
  if (!opened || ::ftruncate(opened.get(), static_cast<off_t>(bytes)) != 0) return;
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened.get(), 0);
  if (mapped == MAP_FAILED) return;
  mapped_ = mapped;
  words_ = {static_cast<std::int32_t*>(mapped), word_of(ranks)};
}

Board::~Board() {
  if (mapped_ != nullptr) ::munmap(mapped_, words_.size_bytes());
}

void Board::come_to(int local_rank, int step) {
  const std::size_t word = word_of(local_rank);
  if (word + 1 >= words_.size()) return;
  std::atomic_ref(words_[word]).store(::getpid());
  std::atomic_ref(words_[word + 1]).store(step);
}

std::vector<Board::Place> Board::places() const {
  std::vector<Place> places;
  for (std::size_t word = 1; word + 1 < words_.size(); word += 2) {
    places.push_back(
        {.pid = std::atomic_ref(words_[word]).load(), .step = std::atomic_ref(words_[word + 1]).load()});
  }
  return places;
}

bool Board::claim_report() {
  std::int32_t& claim = words_.empty() ? own_claim_ : words_[0];
  return std::atomic_ref(claim).exchange(1) == 0;
}

}  // namespace acc::selftest
