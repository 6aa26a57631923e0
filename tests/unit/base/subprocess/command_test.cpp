// SPDX-License-Identifier: Apache-2.0
#include "acc/base/subprocess/command.hpp"

#include <filesystem>
#include <future>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace command_test {

using namespace acc;

namespace {

const Environment kEnvironment = {{"PATH", "/nowhere:/usr/bin:/bin"}, {"WORD", "yes"}};

}  // namespace

TEST_CASE("command: both streams come back, in the given environment, whatever the exit code", "[base]") {
  const auto output = run_command({"sh", "-c", "echo $WORD; echo err >&2; cat; exit 3"}, kEnvironment, {});
  REQUIRE(output);
  CHECK(output->text == "yes\nerr\n");
  CHECK_FALSE(output->timed_out);
}

TEST_CASE("command: exec gets a pointer to each word, then null", "[base]") {
  std::vector<std::string> words = {"a", ""};
  CHECK(pointers_to(words) == std::vector<char*>{words[0].data(), words[1].data(), nullptr});
}

TEST_CASE("command: a missing program is absent", "[base]") {
  CHECK_FALSE(run_command({"acc-no-such-tool"}, kEnvironment, {}));
  CHECK_FALSE(run_command({"/no/such/program"}, kEnvironment, {}));
  CHECK_FALSE(run_command({"sh", "-c", "true"}, {{"PATH", ""}}, {}));
}

TEST_CASE("command: a timeout kills the command and its children", "[base]") {
  const auto output = run_command({"sh", "-c", "echo begun; sleep 1000 & sleep 1000"}, kEnvironment,
                                  {.time = std::chrono::milliseconds(300)});
  REQUIRE(output);
  CHECK(output->timed_out);
}

TEST_CASE("command: output beyond the limit is dropped", "[base]") {
  const auto output = run_command({"sh", "-c", "head -c 300000 /dev/zero"}, kEnvironment, {.bytes = 1000});
  REQUIRE(output);
  CHECK(output->text.size() == 1000);
  CHECK_FALSE(output->timed_out);
}

TEST_CASE("command: several threads may run commands at once", "[base]") {
  std::vector<std::future<std::optional<CommandOutput>>> outputs;
  for (int i = 0; i < 8; ++i) {
    outputs.push_back(std::async(std::launch::async, [i] {
      return run_command({"sh", "-c", "echo " + std::to_string(i)}, kEnvironment, {});
    }));
  }
  for (int i = 0; i < 8; ++i)
    CHECK(outputs[static_cast<std::size_t>(i)].get()->text == std::to_string(i) + "\n");
}

TEST_CASE("command: finds a program as a shell does", "[base]") {
  const test::TemporaryFolder folder;
  const auto file = folder.write("program", "");
  const Environment environment = {{"PATH", folder.path().string() + ":/bin"}};
  CHECK(find_program("program", environment).empty());
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  CHECK(find_program("program", environment) == file);
  CHECK(find_program("sh", environment) == "/bin/sh");
  CHECK(find_program("./program", environment) == "./program");
  std::filesystem::create_directory(folder.path() / "folder");
  CHECK(find_program("folder", environment).empty());
}

}  // namespace command_test
