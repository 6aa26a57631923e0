// SPDX-License-Identifier: Apache-2.0
#include "acc/base/progress_page.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/in_child.hpp"
#include "support/temporary_folder.hpp"

namespace progress_page_test {

using namespace acc;
using namespace std::chrono_literals;

TEST_CASE("progress_page: is read as it was written", "[base]") {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "page";
  const auto before = progress_now();
  ProgressPage page(file);
  REQUIRE(page.is_open());

  SECTION("at first it says who writes, and no more") {
    const auto read = ProgressPage::read(file);
    REQUIRE(read);
    CHECK(read->pid == ::getpid());
    CHECK(first_line_of("/proc/self/stat").find(" " + std::to_string(read->process_start) + " ") !=
          std::string::npos);
    CHECK(read->steps == 0);
    CHECK(read->step_ended == 0ns);
    CHECK_FALSE(read->loss);
    CHECK(read->section == Section::other);
    CHECK(read->section_began >= before);
    CHECK(read->collective.empty());
  }
  SECTION("steps, and how long the last one took") {
    page.set_steps(3);
    const auto first = ProgressPage::read(file);
    page.add_step();
    const auto second = ProgressPage::read(file);
    REQUIRE(first);
    REQUIRE(second);
    CHECK(first->steps == 3);
    CHECK(first->step_duration == 0ns);
    CHECK(second->steps == 4);
    CHECK(second->step_duration == second->step_ended - first->step_ended);
  }
  SECTION("several optimizers step once each in a step") {
    for (std::int64_t step = 1; step <= 5; ++step) {
      page.set_steps(step);
      const auto ended = ProgressPage::read(file)->step_ended;
      page.set_steps(step);
      CHECK(ProgressPage::read(file)->step_ended == ended);
    }
    CHECK(ProgressPage::read(file)->steps == 5);
  }
  SECTION("a training that begins again counts from where it begins") {
    page.set_steps(9);
    page.restart_steps(2);
    CHECK(ProgressPage::read(file)->steps == 2);
    page.set_steps(3);
    CHECK(ProgressPage::read(file)->steps == 3);
    CHECK(ProgressPage::read(file)->step_duration == 0ns);
  }
  SECTION("at first its steps are those of the process") {
    page.add_step();
    CHECK(ProgressPage::read(file)->step_scope == StepScope::process);
  }
  SECTION("a training that says where it begins counts over restarts") {
    page.restart_steps(2);
    CHECK(ProgressPage::read(file)->step_scope == StepScope::training);
    page.set_steps(3);
    page.restart_steps(3);
    CHECK(ProgressPage::read(file)->step_scope == StepScope::training);
    page.restart_steps(0);
    CHECK(ProgressPage::read(file)->step_scope == StepScope::another_training);
    page.restart_steps(9);
    CHECK(ProgressPage::read(file)->step_scope == StepScope::another_training);
  }
  SECTION("a step that has a number counts over restarts") {
    page.add_step();
    page.set_global_step(900);
    page.set_global_step(901);
    auto read = ProgressPage::read(file);
    CHECK(read->steps == 901);
    CHECK(read->step_scope == StepScope::training);
    CHECK(read->step_duration > 0ns);
    page.set_global_step(1);
    read = ProgressPage::read(file);
    CHECK(read->steps == 1);
    CHECK(read->step_scope == StepScope::another_training);
  }
  SECTION("samples, tokens and the loss") {
    page.add_samples(32);
    page.add_samples(8);
    page.add_tokens(4096);
    page.set_loss(2.5);
    const auto read = ProgressPage::read(file);
    CHECK(read->samples == 40);
    CHECK(read->tokens == 4096);
    CHECK(read->loss == 2.5);
  }
  SECTION("a loss that is no number is a loss") {
    page.set_loss(std::numeric_limits<double>::quiet_NaN());
    REQUIRE(ProgressPage::read(file)->loss);
    CHECK(std::isnan(*ProgressPage::read(file)->loss));
    page.set_loss(-std::numeric_limits<double>::infinity());
    CHECK(ProgressPage::read(file)->loss == -std::numeric_limits<double>::infinity());
  }
  SECTION("each section has the time that was spent in it") {
    const auto start = ProgressPage::read(file)->section_began;
    for (const Section section : kSections) page.enter(section);
    page.enter(Section::data);
    const auto read = ProgressPage::read(file);
    CHECK(read->section == Section::data);
    auto all = 0ns;
    for (const auto spent : read->spent) all += spent;
    CHECK(all == read->section_began - start);
  }
  SECTION("the time in each section until the end of the last step") {
    for (const Section section : kSections) page.enter(section);
    CHECK(ProgressPage::read(file)->spent_in_steps == decltype(Progress::spent){});
    page.add_step();
    const auto read = ProgressPage::read(file);
    CHECK(read->spent_in_steps == read->spent);
    page.enter(Section::data);
    CHECK(ProgressPage::read(file)->spent_in_steps == read->spent);
    CHECK(ProgressPage::read(file)->spent != read->spent);
    page.set_global_step(9);
    CHECK(ProgressPage::read(file)->spent_in_steps == ProgressPage::read(file)->spent);
  }
  SECTION("the collective that it waits in, and how many there were") {
    page.begin_collective("all_reduce");
    auto read = ProgressPage::read(file);
    CHECK(read->collective == "all_reduce");
    CHECK(read->collectives == 1);
    CHECK(read->collective_began >= before);
    page.end_collective();
    CHECK(ProgressPage::read(file)->collective.empty());
    page.begin_collective(std::string(100, 'x'));
    read = ProgressPage::read(file);
    CHECK(read->collective == std::string(31, 'x'));
    CHECK(read->collectives == 2);
  }
}

TEST_CASE("progress_page: belongs to the first process of a rank that opens it", "[base]") {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "page";
  ProgressPage page(file);
  page.set_steps(7);
  CHECK(test::in_child([&] {
          ProgressPage another(file);
          another.set_steps(100);
          another.enter(Section::saving);
          return another.is_open() ? 1 : 0;
        }) == 0);
  CHECK(ProgressPage::read(file)->pid == ::getpid());
  CHECK(ProgressPage::read(file)->steps == 7);
}

TEST_CASE("progress_page: of a process that has ended is not read, and is the next one's", "[base]") {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "page";
  CHECK(test::in_child([&] {
          ProgressPage page(file);
          page.set_steps(100);
          page.begin_collective("all_reduce");
          return ProgressPage::read(file)->steps == 100 ? 0 : 1;
        }) == 0);
  CHECK_FALSE(ProgressPage::read(file).has_value());
  ProgressPage page(file);
  page.set_steps(7);
  CHECK(ProgressPage::read(file)->pid == ::getpid());
  CHECK(ProgressPage::read(file)->steps == 7);
}

TEST_CASE("progress_page: what a process has left is read after its end, also in the middle of a write",
          "[base]") {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "page";
  CHECK_FALSE(ProgressPage::read_last(file).has_value());
  CHECK(test::in_child([&] {
          ProgressPage page(file);
          page.set_global_step(100);
          // Its sequence is odd, as if it had been killed then.
          std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(24).put('\1');
          return 0;
        }) == 0);
  const auto page = ProgressPage::read_last(file);
  REQUIRE(page);
  CHECK(page->steps == 100);
  CHECK(page->step_scope == StepScope::training);
}

TEST_CASE("progress_page: one that only says that the rank is followed is the first writer's", "[base]") {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "page";
  std::string words(ProgressPage::kBytes, '\0');
  words.replace(0, 8, "ACCPAGE1");
  words[16] = 1;
  std::ofstream(file) << words;
  CHECK_FALSE(ProgressPage::read(file).has_value());
  REQUIRE(ProgressPage::read_last(file));
  CHECK(ProgressPage::read_last(file)->steps == 0);
  CHECK(ProgressPage(file).is_open());
  CHECK(ProgressPage::read(file)->pid == ::getpid());
}

TEST_CASE("progress_page: its folder is made, private", "[base]") {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "job.progress" / "0-1";
  CHECK(ProgressPage(file).is_open());
  CHECK(std::filesystem::status(file.parent_path()).permissions() == std::filesystem::perms::owner_all);
  CHECK(std::filesystem::file_size(file) == ProgressPage::kBytes);
}

TEST_CASE("progress_page: without a file nothing happens", "[base]") {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = GENERATE("", "/proc/nowhere/page", "/dev/null/page");
  ProgressPage page(file);
  CHECK_FALSE(page.is_open());
  page.set_steps(1);
  page.add_step();
  page.restart_steps(1);
  page.set_global_step(1);
  page.add_samples(1);
  page.add_tokens(1);
  page.set_loss(1);
  page.enter(Section::data);
  page.begin_collective("x");
  page.end_collective();
  CHECK_FALSE(ProgressPage::read(file));
}

TEST_CASE("progress_page: a limit of the size of files does not end the process", "[base]") {
  const test::TemporaryFolder folder;
  CHECK(test::in_child([&] {
          const rlimit limit = {.rlim_cur = 2048, .rlim_max = 2048};
          if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
          return ProgressPage(folder.path() / "page").is_open() ? 1 : 0;
        }) == 0);
}

TEST_CASE("progress_page: what is no page is not read", "[base]") {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "page";
  SECTION("too short") {
    std::ofstream(file) << "ACCPAGE1";
  }
  SECTION("of another version") {
    std::ofstream(file) << "ACCPAGE9" << std::string(ProgressPage::kBytes, '\0');
  }
  SECTION("with a section of another version") {
    {
      const ProgressPage made(file);
    }
    std::fstream out(file);
    out.seekp(10 * 8);
    out.put('\x7f');
  }
  SECTION("with a time of which no sum is a number") {
    {
      const ProgressPage made(file);
    }
    std::fstream out(file);
    out.seekp(5 * 8 + 7);
    out.put('\x7f');
  }
  SECTION("a folder") {
    std::filesystem::create_directory(file);
  }
  SECTION("a pipe without a writer") {
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  }
  SECTION("a link") {
    const ProgressPage made(folder.path() / "other");
    std::filesystem::create_symlink(folder.path() / "other", file);
  }
  CHECK_FALSE(ProgressPage::read(file));
}

TEST_CASE("progress_page: a reader sees no half of a write", "[base]") {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "page";
  ProgressPage page(file);
  std::atomic<bool> over = false;
  // The time in all sections is the time since the first began, whenever one looks.
  const auto start = ProgressPage::read(file)->section_began;
  std::thread writer([&] {
    while (!over) {
      for (const Section section : kSections) page.enter(section);
    }
  });
  int seen = 0;
  while (seen < 2000) {
    const auto read = ProgressPage::read(file);
    if (!read) continue;
    ++seen;
    auto all = 0ns;
    for (const auto spent : read->spent) all += spent;
    if (all != read->section_began - start) break;
  }
  over = true;
  writer.join();
  CHECK(seen == 2000);
}

}  // namespace progress_page_test
