// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/saved_states.hpp"

#include <fstream>

#include "acc/base/error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace saved_states_test {

using acc::SavedState;
namespace fs = std::filesystem;

struct Fixture {
  acc::test::TemporaryFolder folder = {};
  acc::SavedStates states{folder.path() / "training_0_0"};

  void save(std::int64_t number) const { fs::create_directories(states.snapshot(number) / "optimizer_0"); }
  std::vector<std::int64_t> numbers() const {
    std::vector<std::int64_t> numbers;
    for (const SavedState& state : states.all())
      numbers.push_back(state.in_memory ? state.number : -state.number);
    return numbers;
  }
};

using Numbers = std::vector<std::int64_t>;

TEST_CASE_METHOD(Fixture, "saved_states: none before the first", "[formats]") {
  CHECK(states.all().empty());
  states.keep_newest(2);
  states.remove_after(0);
}

TEST_CASE_METHOD(Fixture, "saved_states: the newest first, by number, in memory and on disks", "[formats]") {
  save(9);
  states.add_on_disk(10, "/runs/a\nb/checkpoint-7");
  save(11);
  CHECK(states.all() ==
        std::vector<SavedState>{{.number = 11, .folder = states.snapshot(11)},
                                {.number = 10, .folder = "/runs/a\nb/checkpoint-7", .in_memory = false},
                                {.number = 9, .folder = states.snapshot(9)}});
}

TEST_CASE_METHOD(Fixture, "saved_states: snapshots that are too many go, and the newest on a disk stays",
                 "[formats]") {
  save(1);
  states.add_on_disk(2, "/disk/2");
  save(3);
  states.add_on_disk(4, "/disk/4");
  save(5);
  states.add_on_disk(6, "/disk/6");
  states.keep_newest(2);
  CHECK(numbers() == Numbers{-6, 5, -4, 3});
  states.keep_newest(1);
  CHECK(numbers() == Numbers{-6, 5});
  for (const int number : {7, 8, 9}) save(number);
  states.keep_newest(2);
  CHECK(numbers() == Numbers{9, 8, -6});
}

TEST_CASE_METHOD(Fixture, "saved_states: notes of those on a disk do not pile up", "[formats]") {
  for (int number = 0; number < 5; ++number) states.add_on_disk(number, "/disk");
  states.keep_newest(2);
  CHECK(numbers() == Numbers{-4, -3});
}

TEST_CASE_METHOD(Fixture, "saved_states: a folder that is not UTF-8 is refused", "[formats]") {
  constexpr const char* kRefusal = "/disk/\\xff: is not UTF-8";
  CHECK_THROWS_WITH(states.add_on_disk(0, "/disk/\xff"), Catch::Matchers::StartsWith(kRefusal));
  CHECK_THROWS_WITH(acc::write_snapshot_record(folder.path(), {.id = "a1", .disk = "/disk/\xff"}),
                    Catch::Matchers::StartsWith(kRefusal));
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE_METHOD(Fixture, "saved_states: a note that is being removed is none", "[formats]") {
  save(1);
  fs::create_symlink("nowhere", states.folder() / "on_disk_2");
  CHECK(numbers() == Numbers{1});
}

TEST_CASE_METHOD(Fixture, "saved_states: what nobody saves so is no state", "[formats]") {
  save(1);
  for (const char* name : {"snapshot_01", "snapshot_-1", "snapshot_+2", "snapshot_ 3", "snapshot_4a",
                           "snapshot_", "snapshot_1000000000000001", "snapshot_9223372036854775807"})
    fs::create_directories(states.folder() / name);
  for (const std::string& note :
       {std::string(), std::string("disk/2"), std::string("/disk/\xff"), std::string("/disk\0", 6)}) {
    std::ofstream(states.folder() / "on_disk_2", std::ios::binary) << note;
    CHECK(numbers() == Numbers{1});
  }
}

TEST_CASE_METHOD(Fixture, "saved_states: what came after a state goes, and what killed processes left",
                 "[formats]") {
  for (const int number : {1, 2, 3}) save(number);
  states.add_on_disk(4, "/disk/4");
  fs::create_directories(states.folder() / ".snapshot_5.acc-new" / "optimizer_0");
  states.remove_after(2);
  CHECK(numbers() == Numbers{2, 1});
  states.remove_leftovers();
  CHECK(std::distance(fs::directory_iterator(states.folder()), {}) == 2);
}

TEST_CASE_METHOD(Fixture, "saved_states: trainings are in the order in which a program began them",
                 "[formats]") {
  for (const acc::TrainingNumber& training : {acc::TrainingNumber{10, 0}, {2, 11}, {2, 3}})
    fs::create_directories(acc::states_of_training(folder.path(), training).folder());
  for (const char* name : {"training_of_others", "training_02_3", "training_-1_0", "training_4294967298_3"})
    fs::create_directories(folder.path() / name);
  const auto trainings = acc::states_of_trainings(folder.path());
  REQUIRE(trainings.size() == 3);
  CHECK(trainings[0].folder().filename() == "training_2_3");
  CHECK(trainings[1].folder().filename() == "training_2_11");
  CHECK(trainings[2].folder().filename() == "training_10_0");
}

TEST_CASE_METHOD(Fixture, "saved_states: a record is read as it was written, and else named", "[formats]") {
  const acc::SnapshotRecord record{.id = "a1", .disk = "/runs/checkpoint-120"};
  acc::write_snapshot_record(folder.path(), record);
  CHECK(acc::read_snapshot_record(folder.path()) == record);
  for (const char* text : {"{", R"({"id": "", "disk": "/runs"})", R"({"id": 1, "disk": "/runs"})"}) {
    std::ofstream(folder.path() / "snapshot.json") << text;
    CHECK_THROWS_WITH(acc::read_snapshot_record(folder.path()),
                      Catch::Matchers::EndsWith("snapshot.json: is damaged"));
  }
}

}  // namespace saved_states_test
