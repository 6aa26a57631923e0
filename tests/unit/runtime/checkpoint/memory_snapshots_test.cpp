// SPDX-License-Identifier: Apache-2.0
// Of one process; tests/runtime/memory_states_test.cpp has those of several.
#include "acc/runtime/checkpoint/memory_snapshots.hpp"

#include <cstdlib>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace memory_snapshots_test {

namespace {

struct Fixture {
  Fixture() { ::setenv("ACC_MEMORY_FOLDER", folder.path().c_str(), 1); }
  ~Fixture() { ::unsetenv("ACC_MEMORY_FOLDER"); }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  acc::test::TemporaryFolder folder = {};
};

void save(acc::detail::MemorySnapshots& snapshots) {
  const std::int64_t number = snapshots.next_number({});
  std::filesystem::create_directories(snapshots.folder_of(number));
  for (const auto& step : snapshots.last_steps(number, "/disk", {})) step(snapshots.folder_of(number));
  snapshots.make_room(number, {});
}

}  // namespace

TEST_CASE("memory_snapshots: off without a folder", "[runtime]") {
  acc::detail::MemorySnapshots snapshots;
  CHECK_FALSE(snapshots.is_on());
  snapshots.begin_training();
}

TEST_CASE_METHOD(Fixture, "memory_snapshots: two stay of a training, and one of each before", "[runtime]") {
  acc::detail::MemorySnapshots snapshots;
  REQUIRE(snapshots.is_on());
  for (int i = 0; i < 3; ++i) save(snapshots);
  CHECK(snapshots.newest({}) == snapshots.folder_of(2));
  const auto first = acc::states_of_trainings(folder.path()).front();
  CHECK(first.all().size() == 2);
  snapshots.begin_training();
  CHECK_FALSE(snapshots.newest({}));
  save(snapshots);
  CHECK(snapshots.newest({}) == snapshots.folder_of(0));
  CHECK(first.all().size() == 1);
}

TEST_CASE_METHOD(Fixture, "memory_snapshots: of those on a disk two are known", "[runtime]") {
  acc::detail::MemorySnapshots snapshots;
  for (int i = 0; i < 5; ++i) snapshots.note_on_disk(snapshots.next_number({}), folder.path(), {});
  CHECK(acc::states_of_trainings(folder.path()).front().all().size() == 2);
}

TEST_CASE_METHOD(Fixture, "memory_snapshots: where none can be loaded all stay, and later ones are newer",
                 "[runtime]") {
  acc::detail::MemorySnapshots snapshots;
  snapshots.note_on_disk(snapshots.next_number({}), "/nowhere", {});
  CHECK_FALSE(snapshots.newest({}));
  save(snapshots);
  CHECK(snapshots.newest({}) == snapshots.folder_of(1));
}

TEST_CASE_METHOD(Fixture, "memory_snapshots: what killed processes left goes before the first save",
                 "[runtime]") {
  acc::detail::MemorySnapshots snapshots;
  const auto leftover = snapshots.folder_of(7).parent_path() / ".snapshot_7.acc-new";
  std::filesystem::create_directories(leftover);
  save(snapshots);
  CHECK_FALSE(std::filesystem::exists(leftover));
}

TEST_CASE_METHOD(Fixture, "memory_snapshots: each Accelerator has its own", "[runtime]") {
  acc::detail::MemorySnapshots first;
  save(first);
  acc::detail::MemorySnapshots second;
  CHECK_FALSE(second.newest({}));
  CHECK(first.newest({}));
}

}  // namespace memory_snapshots_test
