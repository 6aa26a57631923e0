// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/state_flush.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "acc/base/files.hpp"
#include "acc/formats/checksums.hpp"
#include "support/catch.hpp"
#include "support/in_child.hpp"
#include "support/temporary_folder.hpp"

namespace state_flush_test {

using namespace acc;
using namespace acc::launcher;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  if (fs::exists(folder))
    for (const auto& entry : fs::directory_iterator(folder))
      names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

using Names = std::vector<std::string>;

// It takes a while to write it to a disk.
constexpr std::size_t kMuch = std::size_t{40} << 20U;

/// A folder in memory, and one on a disk.
struct Fixture {
  test::TemporaryFolder folder = {};
  fs::path memory = folder.path() / "memory";
  fs::path disk = folder.path() / "runs";
  SavedStates states = states_of_training(memory, {});

  fs::path checkpoint(std::int64_t number) const { return disk / ("checkpoint-" + std::to_string(number)); }

  /// As a training saves: the number is also that of its step.
  fs::path save(std::int64_t number) const { return save(states, number); }
  fs::path save(const SavedStates& training, std::int64_t number) const {
    const fs::path snapshot = training.snapshot(number);
    replace_file(snapshot / "model.safetensors", "weights " + std::to_string(number));
    replace_file(snapshot / "optimizer_0" / "__0_0.distcp", std::string_view("moments"));
    seal(snapshot, checkpoint(number));
    return snapshot;
  }
  void save_much(std::int64_t number) const {
    replace_file(states.snapshot(number) / "model.safetensors", std::string(kMuch, 'w'));
    seal(states.snapshot(number), checkpoint(number));
  }
  static void seal(const fs::path& snapshot, const fs::path& disk) {
    write_snapshot_record(snapshot, {.id = "a", .disk = disk});
    write_checksums(snapshot, {});
  }
  static void damage(const fs::path& snapshot) {
    std::ofstream(snapshot / "model.safetensors", std::ios::in) << 'W';
  }
  std::string weights(std::int64_t number) const {
    return read_file(checkpoint(number) / "model.safetensors");
  }
};

SavedState in_memory(std::int64_t number) {
  return {.number = number, .folder = "/memory/" + std::to_string(number)};
}
SavedState on_disk(std::int64_t number) {
  return {.number = number, .folder = "/disk/" + std::to_string(number), .in_memory = false};
}

}  // namespace

TEST_CASE("newer_than_disk: what the disk has, in a folder that exists, need not be copied", "[launch]") {
  const auto all = [](const fs::path&) { return true; };
  const auto none = [](const fs::path&) { return false; };
  const std::vector<SavedState> states = {in_memory(5), on_disk(4), in_memory(3), on_disk(1)};
  CHECK(newer_than_disk(states, all) == std::vector{in_memory(5)});
  CHECK(newer_than_disk(states, none) == std::vector{in_memory(5), in_memory(3)});
  CHECK(newer_than_disk(states, [](const fs::path& folder) { return folder == "/disk/1"; }) ==
        std::vector{in_memory(5), in_memory(3)});
  CHECK(newer_than_disk({on_disk(6), in_memory(5)}, all).empty());
  CHECK(newer_than_disk({in_memory(5), on_disk(5)}, all).empty());
  CHECK(newer_than_disk({}, all).empty());
}

TEST_CASE("has_own_folder: the state saved just before must have another one", "[launch]") {
  CHECK(has_own_folder({{6, "/runs/checkpoint-6"}, {5, "/runs/checkpoint-5"}}));
  CHECK_FALSE(has_own_folder({{6, "/runs/checkpoint_1"}, {5, "/runs/checkpoint_1"}}));
  CHECK_FALSE(has_own_folder({{6, "/runs/checkpoint_1"}, {4, "/runs/checkpoint_0"}}));
  CHECK_FALSE(has_own_folder({{6, "/runs/checkpoint-6"}}));
  CHECK_FALSE(has_own_folder({}));
}

TEST_CASE_METHOD(Fixture, "state_flush: no folder appears in which the training may be about to save",
                 "[launch]") {
  save(8);
  CHECK(flush_newest_state(memory, Workers::running).empty());
  save(9);
  CHECK(flush_newest_state(memory, Workers::running).folder == checkpoint(9));
  const fs::path shared = disk / "checkpoint_0";
  for (const int number : {10, 11}) {
    replace_file(states.snapshot(number) / "model.safetensors", std::string_view("w"));
    seal(states.snapshot(number), shared);
  }
  CHECK(flush_newest_state(memory, Workers::running).empty());
  CHECK(flush_newest_state(memory, Workers::ended).folder == shared);
}

TEST_CASE_METHOD(Fixture, "state_flush: a training that replaces its states is not taken for one without",
                 "[launch]") {
  const auto publish = [this](std::int64_t number) {
    const SavedStates unfinished(states.folder() / ".unfinished");
    fs::rename(save(unfinished, number), states.snapshot(number));
  };
  fs::create_directories(states.folder());
  publish(1);
  publish(2);
  std::jthread training([&](const std::stop_token& end) {
    for (std::int64_t number = 3; !end.stop_requested(); ++number) {
      publish(number);
      states.keep_newest(2);
    }
  });
  for (int copies = 0; copies < 200; ++copies) {
    const FlushResult result = flush_newest_state(memory, Workers::running);
    CHECK_FALSE((result.folder.empty() && result.problem.empty()));
    for (const auto& entry : fs::directory_iterator(states.folder()))
      if (entry.path().filename().string().starts_with("on_disk_")) fs::remove(entry.path());
  }
}

TEST_CASE_METHOD(Fixture, "state_flush: the newest state becomes a folder as the library writes it",
                 "[launch]") {
  save(9);
  save(12);
  CHECK(flush_newest_state(memory, Workers::ended) == FlushResult{.folder = checkpoint(12)});
  CHECK(names_in(disk) == Names{"checkpoint-12"});
  CHECK(names_in(checkpoint(12)) == Names{"model.safetensors", "optimizer_0"});
  CHECK(weights(12) == "weights 12");
  CHECK(read_file(checkpoint(12) / "optimizer_0" / "__0_0.distcp") == "moments");
  CHECK(names_in(memory) == Names{"training_0_0"});
}

TEST_CASE_METHOD(Fixture, "state_flush: a slash or dot at the end is not a part of the folder's name",
                 "[launch]") {
  const char* end = GENERATE("", ".");
  replace_file(states.snapshot(9) / "model.safetensors", std::string_view("weights 9"));
  seal(states.snapshot(9), checkpoint(9) / end);
  CHECK(flush_newest_state(memory, Workers::ended) == FlushResult{.folder = checkpoint(9)});
  CHECK(weights(9) == "weights 9");
  CHECK(names_in(disk) == Names{"checkpoint-9"});
}

TEST_CASE_METHOD(Fixture, "state_flush: it is copied once, and a newer one again", "[launch]") {
  save(9);
  CHECK(flush_newest_state(memory, Workers::ended).folder == checkpoint(9));
  CHECK(flush_newest_state(memory, Workers::ended).empty());
  save(10);
  CHECK(flush_newest_state(memory, Workers::ended).folder == checkpoint(10));
  fs::remove_all(checkpoint(10));
  CHECK(flush_newest_state(memory, Workers::ended).folder == checkpoint(10));
}

TEST_CASE_METHOD(Fixture, "state_flush: nothing is copied where the disk has a newer state, or there is none",
                 "[launch]") {
  CHECK(flush_newest_state(memory, Workers::ended).empty());
  save(9);
  fs::create_directories(disk / "final");
  states.add_on_disk(10, disk / "final");
  CHECK(flush_newest_state(memory, Workers::ended).empty());
  CHECK(names_in(disk) == Names{"final"});
}

TEST_CASE_METHOD(Fixture, "state_flush: of several trainings only the last one counts", "[launch]") {
  save(9);
  const SavedStates second = states_of_training(memory, {.training = 1});
  fs::create_directories(second.folder());
  CHECK(flush_newest_state(memory, Workers::ended).empty());
  save(second, 2);
  CHECK(flush_newest_state(memory, Workers::ended).folder == checkpoint(2));
  CHECK(names_in(disk) == Names{"checkpoint-2"});
}

TEST_CASE_METHOD(Fixture, "state_flush: a damaged state is named, and the one before it is copied",
                 "[launch]") {
  save(9);
  damage(save(12));
  CHECK(flush_newest_state(memory, Workers::ended) ==
        FlushResult{.folder = checkpoint(9),
                    .damaged = {"snapshot_12: model.safetensors: is not what was written"}});
  CHECK(weights(9) == "weights 9");
  CHECK(names_in(disk) == Names{"checkpoint-9"});
}

TEST_CASE_METHOD(Fixture, "state_flush: where all are damaged, nothing is written", "[launch]") {
  damage(save(9));
  fs::remove(save(12) / "model.safetensors");
  CHECK(flush_newest_state(memory, Workers::ended) ==
        FlushResult{.damaged = {"snapshot_12: model.safetensors: is missing",
                                "snapshot_9: model.safetensors: is not what was written"},
                    .problem = "all states in memory are damaged"});
  CHECK_FALSE(fs::exists(disk));
}

TEST_CASE_METHOD(Fixture, "state_flush: a folder that exists is left as it is, and named", "[launch]") {
  save(9);
  replace_file(checkpoint(9) / "model.safetensors", std::string_view("of an earlier job"));
  CHECK(flush_newest_state(memory, Workers::ended).problem == checkpoint(9).string() + ": exists already");
  CHECK(weights(9) == "of an earlier job");
}

TEST_CASE_METHOD(Fixture, "state_flush: a state that names no folder is not put anywhere", "[launch]") {
  const fs::path snapshot = save(9);
  fs::remove(snapshot / "checksums_0.json");
  seal(snapshot, "runs/checkpoint-9");
  CHECK(flush_newest_state(memory, Workers::ended).problem ==
        snapshot.string() + ": does not name its folder on a disk");
}

TEST_CASE_METHOD(Fixture, "state_flush: when it is interrupted, nothing is left", "[launch]") {
  save(9);
  CHECK(flush_newest_state(memory, Workers::ended, [] { return true; }).problem ==
        checkpoint(9).string() + ": was not written before the job had to end");
  CHECK(names_in(disk).empty());
  CHECK(names_in(memory) == Names{"training_0_0"});
}

TEST_CASE_METHOD(Fixture, "state_flush: a training may remove the state that is being copied", "[launch]") {
  const fs::path snapshot = save(9);
  const auto remove = [&] {
    fs::remove_all(snapshot);
    return false;
  };
  CHECK(flush_newest_state(memory, Workers::ended, remove) == FlushResult{.folder = checkpoint(9)});
  CHECK(names_in(checkpoint(9)) == Names{"model.safetensors", "optimizer_0"});
}

TEST_CASE_METHOD(Fixture, "state_flush: what a killed process has left is replaced", "[launch]") {
  save(9);
  replace_file(disk / ".checkpoint-9.acc-copy" / "half", std::string_view("x"));
  CHECK(flush_newest_state(memory, Workers::ended).folder == checkpoint(9));
  CHECK(names_in(disk) == Names{"checkpoint-9"});
  CHECK(names_in(checkpoint(9)) == Names{"model.safetensors", "optimizer_0"});
}

TEST_CASE_METHOD(Fixture, "state_flush: a disk that cannot be written is one error", "[launch]") {
  save(9);
  replace_file(disk, std::string_view("a file"));
  CHECK(flush_newest_state(memory, Workers::ended) ==
        FlushResult{.folder = checkpoint(9),
                    .problem = checkpoint(9).string() + ": cannot be created: Not a directory"});
}

TEST_CASE("state_flush: the result survives the way through the pipe, and a child that says nothing has one",
          "[launch]") {
  const FlushResult result = {.folder = "/a/checkpoint-1", .damaged = {"b"}, .problem = "c"};
  CHECK(decode_flush_result(encode(result)) == result);
  CHECK(result_of({.text = encode(result)}, true) == result);
  CHECK(result_of({}, true).problem == "it was not written before the job had to end");
  CHECK(result_of({}, false).problem == "the process that copied it was killed");
  CHECK(result_of({.problem = "no process is left"}, false).problem == "no process is left");
}

TEST_CASE_METHOD(Fixture, "state_flush: a child copies, and says so in the event loop", "[launch]") {
  CHECK(test::in_child([&] {
          boost::asio::io_context loop(1);
          std::vector<FlushResult> results;
          StateFlush flush(loop, memory, [&](const FlushResult& result) { results.push_back(result); });
          if (flush.begin(Workers::ended)) return 1;
          save(9);
          if (!flush.begin(Workers::ended)) return 2;
          loop.run();
          return results == std::vector{FlushResult{.folder = checkpoint(9)}} ? 0 : 3;
        }) == 0);
  CHECK(weights(9) == "weights 9");
}

TEST_CASE_METHOD(Fixture, "state_flush: signals that an engine sends to all processes do not end the copy",
                 "[launch]") {
  save_much(9);
  CHECK(test::in_child([&] {
          boost::asio::io_context loop(1);
          std::vector<FlushResult> results;
          StateFlush flush(loop, memory, [&](const FlushResult& result) { results.push_back(result); });
          flush.begin(Workers::ended);
          while (names_in(disk).empty()) std::this_thread::yield();
          const std::string self = std::to_string(::getpid());
          const std::string child = text_of_kernel("/proc/self/task/" + self + "/children");
          for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2})
            ::kill(std::stoi(child), signal);
          loop.run();
          return results == std::vector{FlushResult{.folder = checkpoint(9)}} ? 0 : 1;
        }) == 0);
}

TEST_CASE_METHOD(Fixture, "state_flush: interrupted at any moment, it is whole on the disk or not at all",
                 "[launch]") {
  save_much(9);
  const auto delay = GENERATE(std::chrono::milliseconds(0), std::chrono::milliseconds(5),
                              std::chrono::milliseconds(20), std::chrono::milliseconds(60));
  CHECK(test::in_child([&] {
          boost::asio::io_context loop(1);
          std::vector<FlushResult> results;
          StateFlush flush(loop, memory, [&](const FlushResult& result) { results.push_back(result); });
          flush.begin(Workers::ended);
          loop.run_for(delay);
          flush.interrupt();
          loop.restart();
          loop.run();
          return results.size() == 1 && results[0].problem.empty() == fs::exists(checkpoint(9)) ? 0 : 1;
        }) == 0);
  if (fs::exists(checkpoint(9))) CHECK(weights(9).size() == kMuch);
  CHECK(names_in(disk).size() <= 1);
}

}  // namespace state_flush_test
