// SPDX-License-Identifier: Apache-2.0
#include "acc/control/job_file.hpp"

#include <signal.h>
#include <sys/resource.h>
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
struct JobFolders {
  JobFolders() {
    fs::create_directory(runtime);
    fs::permissions(runtime, fs::perms::owner_all);
    fs::create_directories(leftover / "attempt_0");
    for (const char* name : {"train-1.sock", ".train-1.sock"}) std::ofstream(runtime / name) << "";
  }
  bool has_leftovers() const {
    return fs::exists(leftover) || fs::exists(runtime / "train-1.sock") ||
           fs::exists(runtime / ".train-1.sock");
  }

  TemporaryFolder base = {};
  fs::path runtime = base.path() / "acc";
  fs::path leftover = base.path() / "torchelastic_left";
};

// Calls `work` in a process that is then killed.
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
  const JobFolders folders;
  in_killed_process([&] {
    JobFile* file = new JobFile({folders.runtime}, "train-1");
    file->add(folders.leftover);
    file->add(folders.base.path() / "torchelastic_never_made");
  });
  CHECK(fs::exists(folders.runtime / "train-1.job"));
  CHECK(folders.has_leftovers());
  remove_leftovers({folders.base.path() / "missing", folders.runtime});
  CHECK_FALSE(folders.has_leftovers());
  CHECK(fs::is_empty(folders.runtime));
}

TEST_CASE("job_file: the pages of a killed job's workers are removed, too", "[control]") {
  const JobFolders folders;
  in_killed_process([&] {
    JobFile* file = new JobFile({folders.runtime}, "train-1");
    fs::create_directory(file->progress_folder());
    std::ofstream(file->progress_folder() / "0-0") << "page";
  });
  CHECK(fs::exists(folders.runtime / "train-1.progress" / "0-0"));
  remove_leftovers({folders.runtime});
  CHECK(fs::is_empty(folders.runtime));
  CHECK(JobFile({folders.base.path() / "missing" / "acc"}, "train-1").progress_folder().empty());
}

TEST_CASE("job_file: a starting job is never taken for a killed one", "[control]") {
  const TemporaryFolder base;
  const fs::path first = base.path() / "first";
  const fs::path second = base.path() / "second";
  fs::create_directory(first);
  fs::permissions(first, fs::perms::owner_all);
  std::atomic<bool> done = false;
  std::thread cleaner([&] {
    while (!done) remove_leftovers({first});
  });
  int count = 0;
  for (int i = 0; i < 2000; ++i) {
    const JobFile file({first, second}, "train-" + std::to_string(i));
    if (fs::exists(first / ("train-" + std::to_string(i) + ".job"))) ++count;
    file.remove();
  }
  done = true;
  cleaner.join();
  CHECK(count == 2000);
  CHECK_FALSE(fs::exists(second));
}

TEST_CASE("job_file: a job of the same id that was killed is cleaned up, a living one keeps its file",
          "[control]") {
  const JobFolders folders;
  const fs::path other = folders.base.path() / "other";
  in_killed_process([&] { (new JobFile({folders.runtime}, "train-1"))->add(folders.leftover); });
  const JobFile next({folders.runtime, other}, "train-1");
  CHECK_FALSE(folders.has_leftovers());
  const JobFile third({folders.runtime, other}, "train-1");
  CHECK(third.id() == "train-1-2");
  remove_leftovers({folders.runtime, other});
  CHECK(fs::exists(folders.runtime / "train-1.job"));
  third.remove();
  CHECK(fs::exists(folders.runtime / "train-1.job"));
}

TEST_CASE("job_file: nothing is removed while a process of the job is alive", "[control]") {
  const JobFolders folders;
  int gate[2] = {-1, -1};
  REQUIRE(::pipe(gate) == 0);
  in_killed_process([&] {
    JobFile* file = new JobFile({folders.runtime}, "train-1");
    file->add(folders.leftover);
    if (::fork() != 0) return;
    ::close(gate[1]);
    char byte = 0;
    ::_exit(::read(gate[0], &byte, 1) == 0 ? 0 : 1);
  });
  remove_leftovers({folders.runtime});
  CHECK(folders.has_leftovers());
  CHECK(fs::exists(folders.runtime / "train-1.job"));
  ::close(gate[1]);  // it ends
  while (fs::exists(folders.runtime / "train-1.job")) remove_leftovers({folders.runtime});
  CHECK_FALSE(folders.has_leftovers());
  ::close(gate[0]);
}

TEST_CASE("job_file: a job that ends removes its file", "[control]") {
  const JobFolders folders;
  {
    const JobFile file({folders.runtime}, "train-3");
    CHECK(fs::exists(folders.runtime / "train-3.job"));
  }
  CHECK_FALSE(fs::exists(folders.runtime / "train-3.job"));
}

TEST_CASE("job_file: only folders of our own are removed, and no link is followed", "[control]") {
  const JobFolders folders;
  const fs::path link = folders.base.path() / "torchelastic_link";
  fs::create_directory_symlink(folders.leftover, link);
  in_killed_process([&] {
    JobFile* file = new JobFile({folders.runtime}, "train-2");
    file->add(link);
    file->add("torchelastic_relative");
  });
  remove_leftovers({folders.runtime});
  CHECK(fs::exists(folders.leftover / "attempt_0"));
  CHECK(fs::is_symlink(link));
  CHECK_FALSE(fs::exists(folders.runtime / "train-2.job"));
}

TEST_CASE("job_file: a path that was cut when it was written is no folder of the job", "[control]") {
  const JobFolders folders;
  const fs::path next = folders.base.path() / "acc_memory_next";
  fs::create_directory(next);
  std::ofstream(folders.runtime / "train-1.job") << folders.leftover.string();
  std::ofstream(folders.runtime / "train-2.job") << next.string() << '\0' << folders.leftover.string();
  remove_leftovers({folders.runtime});
  CHECK(fs::exists(folders.leftover / "attempt_0"));
  CHECK_FALSE(fs::exists(next));
  CHECK_FALSE(fs::exists(folders.runtime / "train-1.job"));
}

TEST_CASE("job_file: only folders with a name that a job gives are removed", "[control]") {
  const JobFolders folders;
  const fs::path precious = folders.base.path() / "precious";
  const fs::path watch = folders.base.path() / "train-1.watch";
  const fs::path other_watch = folders.base.path() / "train-2.watch";
  for (const fs::path& folder : {precious, watch, other_watch}) fs::create_directory(folder);
  in_killed_process([&] {
    JobFile* file = new JobFile({folders.runtime}, "train-1");
    for (const fs::path& folder : {folders.base.path(), precious, watch, other_watch}) file->add(folder);
  });
  remove_leftovers({folders.runtime});
  CHECK(fs::exists(precious));
  CHECK(fs::exists(other_watch));
  CHECK_FALSE(fs::exists(watch));
  CHECK_FALSE(fs::exists(folders.runtime / "train-1.job"));
}

TEST_CASE("job_file: a folder that does not fit into the file leaves no part of its path there",
          "[control]") {
  const JobFolders folders;
  const fs::path other = folders.base.path() / "acc_memory_other";
  fs::create_directory(other);
  in_killed_process([&] {
    JobFile* file = new JobFile({folders.runtime}, "train-1");
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {.rlim_cur = other.string().size() + 1, .rlim_max = RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    file->add(folders.leftover.string() + std::string(100, 'x'));
    file->add(other);
  });
  remove_leftovers({folders.runtime});
  CHECK_FALSE(fs::exists(other));
  CHECK(fs::exists(folders.leftover));
}

TEST_CASE("job_file: the job runs without a folder, too", "[control]") {
  const TemporaryFolder base;
  JobFile file({base.write("file", ""), base.path() / "a" / "b"}, "train-1");
  file.add(base.path());
  file.remove();
  CHECK(fs::exists(base.path()));
}

}  // namespace job_file_test
