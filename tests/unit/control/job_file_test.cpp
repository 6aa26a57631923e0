// SPDX-License-Identifier: Apache-2.0
#include "acc/control/job_file.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <thread>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace job_file_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;
namespace fs = std::filesystem;

namespace {

/// A runtime folder with the sockets of a job, and a temporary folder of the job.
struct Place {
  Place() {
    fs::create_directory(runtime);
    fs::permissions(runtime, fs::perms::owner_all);
    fs::create_directories(left / "attempt_0");
    for (const char* name : {"train-1.sock", ".train-1.sock"}) std::ofstream(runtime / name) << "";
  }
  bool has_leftovers() const {
    return fs::exists(left) || fs::exists(runtime / "train-1.sock") || fs::exists(runtime / ".train-1.sock");
  }

  TemporaryFolder base = {};
  fs::path runtime = base.path() / "acc";
  fs::path left = base.path() / "left";
};

// Calls `act` in a process that is then killed.
void in_killed_process(const std::function<void()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    work();
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(pid, nullptr, 0);
}

}  // namespace

TEST_CASE("job_file: while a job of this id lives, as in another container, the next one has another id",
          "[control]") {
  const TemporaryFolder base;
  const fs::path runtime = base.path() / "acc";
  const JobFile first({runtime}, "train-1");
  {
    const JobFile second({runtime}, "train-1");
    CHECK(first.id() == "train-1");
    CHECK(second.id() == "train-1-2");
    CHECK(fs::exists(runtime / "train-1-2.job"));
  }
  CHECK(fs::exists(runtime / "train-1.job"));
  CHECK_FALSE(fs::exists(runtime / "train-1-2.job"));
  CHECK(JobFile({runtime}, "train-1").id() == "train-1-2");
}

TEST_CASE("job_file: leftovers of a killed job are removed by the next one", "[control]") {
  const Place place;
  in_killed_process([&] {
    JobFile* file = new JobFile({place.runtime}, "train-1");
    file->add(place.left);
    file->add(place.base.path() / "never made");
  });
  CHECK(fs::exists(place.runtime / "train-1.job"));
  CHECK(place.has_leftovers());
  remove_leftovers({place.base.path() / "missing", place.runtime});
  CHECK_FALSE(place.has_leftovers());
  CHECK(fs::is_empty(place.runtime));
}

TEST_CASE("job_file: the pages of a killed job's workers are removed, too", "[control]") {
  const Place place;
  in_killed_process([&] {
    JobFile* file = new JobFile({place.runtime}, "train-1");
    fs::create_directory(file->progress_folder());
    std::ofstream(file->progress_folder() / "0-0") << "page";
  });
  CHECK(fs::exists(place.runtime / "train-1.progress" / "0-0"));
  remove_leftovers({place.runtime});
  CHECK(fs::is_empty(place.runtime));
  CHECK(JobFile({place.base.path() / "missing" / "acc"}, "train-1").progress_folder().empty());
}

TEST_CASE("job_file: a starting job is never taken for a killed one", "[control]") {
  const TemporaryFolder base;
  const fs::path first = base.path() / "first";
  const fs::path second = base.path() / "second";
  fs::create_directory(first);
  fs::permissions(first, fs::perms::owner_all);
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) remove_leftovers({first});
  });
  int there = 0;
  for (int i = 0; i < 2000; ++i) {
    const JobFile file({first, second}, "train-" + std::to_string(i));
    if (fs::exists(first / ("train-" + std::to_string(i) + ".job"))) ++there;
    file.remove();
  }
  done = true;
  other.join();
  CHECK(there == 2000);
  CHECK_FALSE(fs::exists(second));
}

TEST_CASE("job_file: a job of the same id that was killed is cleaned up, a living one keeps its file",
          "[control]") {
  const Place place;
  const fs::path other = place.base.path() / "other";
  in_killed_process([&] { (new JobFile({place.runtime}, "train-1"))->add(place.left); });
  const JobFile next({place.runtime, other}, "train-1");
  CHECK_FALSE(place.has_leftovers());
  const JobFile third({place.runtime, other}, "train-1");
  CHECK(third.id() == "train-1-2");
  remove_leftovers({place.runtime, other});
  CHECK(fs::exists(place.runtime / "train-1.job"));
  third.remove();
  CHECK(fs::exists(place.runtime / "train-1.job"));
}

TEST_CASE("job_file: nothing is removed while a process of the job is alive", "[control]") {
  const Place place;
  int gate[2] = {-1, -1};
  REQUIRE(::pipe(gate) == 0);
  in_killed_process([&] {
    JobFile* file = new JobFile({place.runtime}, "train-1");
    file->add(place.left);
    if (::fork() != 0) return;
    ::close(gate[1]);
    char byte = 0;
    ::_exit(::read(gate[0], &byte, 1) == 0 ? 0 : 1);
  });
  remove_leftovers({place.runtime});
  CHECK(place.has_leftovers());
  CHECK(fs::exists(place.runtime / "train-1.job"));
  ::close(gate[1]);  // it ends
  while (fs::exists(place.runtime / "train-1.job")) remove_leftovers({place.runtime});
  CHECK_FALSE(place.has_leftovers());
  ::close(gate[0]);
}

TEST_CASE("job_file: a job that ends removes its file", "[control]") {
  const Place place;
  {
    const JobFile file({place.runtime}, "train-3");
    CHECK(fs::exists(place.runtime / "train-3.job"));
  }
  CHECK_FALSE(fs::exists(place.runtime / "train-3.job"));
}

TEST_CASE("job_file: only folders of our own are removed, and no link is followed", "[control]") {
  const Place place;
  const fs::path link = place.base.path() / "link";
  fs::create_directory_symlink(place.left, link);
  in_killed_process([&] {
    JobFile* file = new JobFile({place.runtime}, "train-2");
    file->add(link);
    file->add("relative");
  });
  remove_leftovers({place.runtime});
  CHECK(fs::exists(place.left / "attempt_0"));
  CHECK(fs::is_symlink(link));
  CHECK_FALSE(fs::exists(place.runtime / "train-2.job"));
}

TEST_CASE("job_file: the job runs without a folder, too", "[control]") {
  const TemporaryFolder base;
  JobFile file({base.write("file", ""), base.path() / "a" / "b"}, "train-1");
  file.add(base.path());
  file.remove();
  CHECK(fs::exists(base.path()));
}

}  // namespace job_file_test
