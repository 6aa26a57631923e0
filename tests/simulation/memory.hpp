// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

/// Who has allocated what: each simulated process has an account, to which `operator new` adds what is
/// allocated while the process runs, and from which `operator delete` takes it, whoever calls it.
namespace simulation {

/// 0: nobody's, of which nothing is known.
using Account = std::uint32_t;

/// One that nobody has had before in a job, and which is empty.
Account new_account();
/// The bytes that were allocated on it and are not free.
std::int64_t held_by(Account account);
/// Where allocations go from now on. Returns where they went.
Account charge(Account account);

/// What the world remembers on behalf of a process is not the process's: the rest of the block is nobody's.
class Uncharged {
 public:
  Uncharged() : before_(charge(0)) {}
  ~Uncharged() { charge(before_); }
  Uncharged(const Uncharged&) = delete;
  Uncharged& operator=(const Uncharged&) = delete;

 private:
  Account before_;
};

}  // namespace simulation
