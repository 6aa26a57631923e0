// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/memory_folder.hpp"

#include <unistd.h>

#include <fstream>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/in_child.hpp"

namespace memory_folder_test {

using namespace acc;
using namespace acc::launcher;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMegabyte = 1'000'000;

MemoryRequest request_of(std::uint64_t bytes) {
  return {.bytes = bytes, .origin = "--memory-checkpoints"};
}

MemoryFolder make(std::uint64_t bytes, const fs::path& shared_memory = "/dev/shm") {
  return MemoryFolder::make(request_of(bytes), [](const fs::path&) {}, shared_memory);
}

}  // namespace

TEST_CASE("memory_folder: is in memory, for its user alone, and removed with all that is in it", "[launch]") {
  fs::path announced;
  const MemoryFolder folder =
      MemoryFolder::make(request_of(kMegabyte), [&](const fs::path& path) { announced = path; });
  CHECK(folder.path() == announced);
  CHECK(folder.path().parent_path() == "/dev/shm");
  CHECK(fs::status(folder.path()).permissions() == fs::perms::owner_all);
  std::ofstream(folder.path() / "state") << "saved";
  folder.remove();
  CHECK_FALSE(fs::exists(folder.path()));
}

TEST_CASE("memory_folder: what leaves less is an error with both numbers", "[launch]") {
  constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30U;
  const MemoryRequest request = request_of(8 * kGibibyte);
  const MemoryLeft enough = {.bytes = 8 * kGibibyte, .limit = 8 * kGibibyte};
  const MemoryLeft little = {.bytes = 3 * kGibibyte, .limit = 4 * kGibibyte};
  CHECK_FALSE(lack_of_memory(request, std::nullopt, std::nullopt));
  CHECK_FALSE(lack_of_memory(request, enough, enough));
  REQUIRE(lack_of_memory(request, enough, little));
  CHECK(to_string(*lack_of_memory(request, enough, little)) ==
        "--memory-checkpoints: 8.0 GiB are asked for, and the memory limit of 4.0 GiB leaves 3.0 GiB (the "
        "folder "
        "counts to that limit: raise it, or ask for less)");
  CHECK(to_string(*lack_of_memory(request, little, std::nullopt)) ==
        "--memory-checkpoints: 8.0 GiB are asked for, and this machine's memory of 4.0 GiB leaves 3.0 GiB "
        "(ask for "
        "less)");
}

TEST_CASE("memory_folder: where shared memory is too small, another file system in memory is mounted",
          "[launch]") {
  const int result = test::in_child([] {
    MemoryFolder folder;
    try {
      folder = make(5 * kMegabyte, "/proc");
    } catch (const Error&) {
      return test::kSkipped;  // this user may mount nothing
    }
    std::ofstream(folder.path() / "state") << std::string(4 * kMegabyte, 'x');
    const bool has_room = fs::file_size(folder.path() / "state") == 4 * kMegabyte;
    std::ofstream(folder.path() / "more") << std::string(2 * kMegabyte, 'x');
    const bool has_limit = fs::file_size(folder.path() / "more") < 2 * kMegabyte;
    folder.remove();
    return has_room && has_limit && !fs::exists(folder.path()) ? 0 : 1;
  });
  CHECK((result == 0 || result == test::kSkipped));
}

TEST_CASE("memory_folder: who may mount nothing is told what there is and what to do", "[launch]") {
  CHECK(test::in_child([] {
          constexpr uid_t kNobody = 65534;
          if (::geteuid() == 0 && ::setuid(kNobody) != 0) return 1;
          const std::string text = test::error_of([] { make(5 * kMegabyte, "/proc"); });
          return text.starts_with(
                     "--memory-checkpoints: /proc has 0.0 MiB free, and 4.8 MiB are asked for (give a "
                     "container more: ")
                     ? 0
                     : 1;
        }) == 0);
}

}  // namespace memory_folder_test
