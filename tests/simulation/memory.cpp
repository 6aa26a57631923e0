// SPDX-License-Identifier: Apache-2.0
#include "simulation/memory.hpp"

#include <array>
#include <cstdlib>
#include <new>

namespace simulation {
namespace {

// Many times the processes of a job.
constexpr Account kAccounts = 4096;

// Zero before anything is allocated.
constinit std::array<std::int64_t, kAccounts> bytes_held = {};
constinit Account charged = 0;
constinit Account last_account = 0;

// In front of each block.
struct alignas(alignof(std::max_align_t)) Header {
  std::size_t size;
  Account account;
};

}  // namespace

Account new_account() {
  last_account = last_account % (kAccounts - 1) + 1;
  bytes_held.at(last_account) = 0;
  return last_account;
}

std::int64_t held_by(Account account) {
  return bytes_held.at(account);
}

Account charge(Account account) {
  return std::exchange(charged, account);
}

void* allocate(std::size_t size) {
  auto* const header = static_cast<Header*>(std::malloc(sizeof(Header) + size));
  if (header == nullptr) throw std::bad_alloc();
  *header = {.size = size, .account = charged};
  bytes_held[charged] += static_cast<std::int64_t>(size);
  return header + 1;
}

void release(void* block) {
  if (block == nullptr) return;
  Header* const header = static_cast<Header*>(block) - 1;
  bytes_held[header->account] -= static_cast<std::int64_t>(header->size);
  std::free(header);
}

}  // namespace simulation

// Those for arrays call these.
void* operator new(std::size_t size) {
  return simulation::allocate(size);
}
// Calls the one above, too, but not where a sanitizer has one of its own.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept try {
  return simulation::allocate(size);
} catch (const std::bad_alloc&) {
  return nullptr;
}
void operator delete(void* block) noexcept {
  simulation::release(block);
}
void operator delete(void* block, std::size_t) noexcept {
  simulation::release(block);
}
