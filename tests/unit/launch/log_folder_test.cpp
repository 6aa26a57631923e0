// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/log_folder.hpp"

#include <sys/stat.h>

#include <fstream>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace log_folder_test {

using namespace acc;
using namespace acc::launcher;
namespace fs = std::filesystem;

namespace {

LaunchPlan plan_in(const test::TemporaryFolder& folder) {
  LaunchPlan plan;
  plan.inherited = Environment{{"TMPDIR", folder.path().string()}};
  return plan;
}

}  // namespace

TEST_CASE("log_folder: a temporary base, private and removed", "[launch]") {
  const test::TemporaryFolder folder;
  LaunchPlan plan = plan_in(folder);
  plan.run_id = "a/b";
  const LogFolder logs = LogFolder::make(plan);
  const fs::path base = logs.run_folder().parent_path();
  CHECK(base.parent_path() == folder.path());
  CHECK(base.filename().string().starts_with("torchelastic_"));
  CHECK(logs.run_folder().filename().string().starts_with("a_b_"));
  struct stat info = {};
  REQUIRE(::stat(base.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777U) == 0700U);
  logs.remove_temporary();
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("log_folder: a temporary base is removed if the folder in it cannot be made", "[launch]") {
  const test::TemporaryFolder folder;
  LaunchPlan plan = plan_in(folder);
  plan.run_id = std::string(300, 'x');
  CHECK(test::error_of([&] { LogFolder::make(plan); }).find("File name too long") != std::string::npos);
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("log_folder: pages are beside the error files in memory, else in their own folder", "[launch]") {
  const test::TemporaryFolder folder;
  const fs::path pages = folder.path() / "job.progress";
  LaunchPlan plan;
  SECTION("in memory") {
    const LogFolder logs = LogFolder::make(plan, [](const fs::path&) {}, pages);
    const std::string prefix = logs.page_prefix(1);
    logs.remove_temporary();
    if (logs.run_folder().string().starts_with("/dev/shm/")) {
      CHECK(prefix == (logs.attempt(1) / "progress-").string());
    } else {
      CHECK(prefix == (pages / "1-").string());
    }
  }
  SECTION("on a disk") {
    plan.output.log_dir = folder.path() / "logs";
    const LogFolder logs = LogFolder::make(plan, [](const fs::path&) {}, pages);
    CHECK(logs.page_prefix(1) == (pages / "1-").string());
    CHECK_FALSE(fs::exists(pages));
    // As workers do. What they said before is gone when others start.
    fs::create_directory(pages);
    std::ofstream(logs.page_prefix(0) + "0") << "page";
    std::ofstream(logs.page_prefix(1) + "0") << "page";
    logs.make_attempt(1, 1);
    CHECK_FALSE(fs::exists(pages));
    fs::create_directory(pages);
    logs.remove_pages();
    CHECK_FALSE(fs::exists(pages));
  }
  SECTION("without logs") {
    plan.output.no_logs = true;
    CHECK(LogFolder::make(plan, [](const fs::path&) {}, pages).page_prefix(0) == (pages / "0-").string());
  }
  SECTION("for a program without ranks, or without a folder") {
    plan.output.log_dir = folder.path() / "logs";
    CHECK(LogFolder::make(plan).page_prefix(0).empty());
    plan.sets_ranks = false;
    CHECK(LogFolder::make(plan, [](const fs::path&) {}, pages).page_prefix(0).empty());
  }
}

TEST_CASE("log_folder: a temporary base is removed with all attempts and what workers left in them",
          "[launch]") {
  const test::TemporaryFolder folder;
  LaunchPlan plan = plan_in(folder);
  plan.nproc_per_node = 2;
  const LogFolder logs = LogFolder::make(plan);
  logs.make_attempt(0, 2);
  SECTION("nothing") {}
  SECTION("a file") {
    std::ofstream(logs.attempt(0) / "1" / "error.json") << "{}";
  }
  SECTION("another attempt") {
    logs.make_attempt(1, 2);
  }
  logs.remove_temporary();
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("log_folder: without TMPDIR error files are in memory, logs on the disk", "[launch]") {
  LaunchPlan plan;
  std::string parent = fs::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
  SECTION("error files alone") {}
  SECTION("with logs") {
    plan.output.tee.default_streams = Streams::out;
    parent = "/tmp";
  }
  const LogFolder logs = LogFolder::make(plan);
  CHECK(logs.run_folder().parent_path().parent_path() == parent);
  logs.remove_temporary();
  CHECK_FALSE(fs::exists(logs.run_folder().parent_path()));
}

TEST_CASE("log_folder: a named base is created, absolute, and kept", "[launch]") {
  const test::TemporaryFolder folder;
  LaunchPlan plan = plan_in(folder);
  plan.output.log_dir = fs::relative(folder.path() / "x" / "logs");
  const LogFolder logs = LogFolder::make(plan);
  CHECK(logs.run_folder().is_absolute());
  logs.remove_temporary();
  CHECK(fs::is_directory(logs.run_folder()));
  CHECK(fs::equivalent(logs.run_folder().parent_path(), folder.path() / "x" / "logs"));
}

TEST_CASE("log_folder: an empty folder per attempt and worker", "[launch]") {
  const test::TemporaryFolder folder;
  const LogFolder logs = LogFolder::make(plan_in(folder));
  logs.make_attempt(0, 2);
  CHECK(logs.attempt(0).filename() == "attempt_0");
  std::ofstream(logs.attempt(0) / "1" / "error.json") << "old";
  logs.make_attempt(0, 2);
  CHECK(fs::is_directory(logs.attempt(0) / "0"));
  CHECK(fs::is_empty(logs.attempt(0) / "1"));
}

TEST_CASE("log_folder: nothing is created if nothing is kept", "[launch]") {
  const test::TemporaryFolder folder;
  LaunchPlan plan = plan_in(folder);
  SECTION("no logs") {
    plan.output.no_logs = true;
  }
  SECTION("a plain process") {
    plan.sets_ranks = false;
  }
  const LogFolder logs = LogFolder::make(plan);
  logs.make_attempt(0, 2);
  CHECK(logs.attempt(0).empty());
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("log_folder: a base that cannot be created is an error with a hint", "[launch]") {
  const test::TemporaryFolder folder;
  LaunchPlan plan = plan_in(folder);
  plan.output.log_dir = folder.write("file", "") / "logs";
  const std::string error = test::error_of([&] { LogFolder::make(plan); });
  CHECK(error.find("cannot create the log folder") != std::string::npos);
  CHECK(error.find("--log-dir") != std::string::npos);
}

TEST_CASE("log_folder: after a failure the files that the user asked for are kept", "[launch]") {
  const test::TemporaryFolder folder;
  LaunchPlan plan = plan_in(folder);
  CHECK_FALSE(LogFolder::make(plan).stays_after_failure());
  plan.output.tee.of_rank[0] = Streams::err;
  CHECK(LogFolder::make(plan).stays_after_failure());
  plan.output.tee = {};
  plan.output.log_dir = folder.path() / "logs";
  CHECK(LogFolder::make(plan).stays_after_failure());
}

}  // namespace log_folder_test
