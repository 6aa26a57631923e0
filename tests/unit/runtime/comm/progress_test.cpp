// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/progress.hpp"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "support/catch.hpp"
#include "support/in_child.hpp"
#include "support/torch_tensor.hpp"

namespace progress_test {

using namespace acc;
using acc::detail::OptimizerSteps;

namespace {

// Runs in a process of its own, whose first use of progress opens the page that the launcher names. Returns
// what it has left.
template <class Function>
Progress left_by(Function function) {
  const auto file = test::temporary_folder() / "page";
  const pid_t process = ::fork();
  if (process == 0) {
    ::setenv("ACC_PROGRESS", file.c_str(), 1);
    function([&] { return *ProgressPage::read(file); });
    ::_exit(0);
  }
  // Its page counts until it is reaped.
  siginfo_t ended = {};
  ::waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOWAIT);
  Progress page = ProgressPage::read(file).value_or(Progress());
  int status = -1;
  ::waitpid(process, &status, 0);
  CHECK(status == 0);
  return page;
}

void report_steps(const OptimizerSteps& optimizer, int steps) {
  for (; steps > 0; --steps) optimizer.report();
}

void require(bool condition) {
  if (!condition) ::_exit(1);
}

}  // namespace

TEST_CASE("progress: sections are in one another", "[runtime]") {
  const Progress page = left_by([](const auto& now) {
    {
      const ProgressSection optimizer(Section::optimizer);
      require(now().section == Section::optimizer);
      {
        const ProgressSection forward(Section::forward);
        require(now().section == Section::forward);
      }
      require(now().section == Section::optimizer);
    }
  });
  CHECK(page.section == Section::other);
}

TEST_CASE("progress: all that happens in an evaluation, or in a save, counts as that", "[runtime]") {
  const Section whole = GENERATE(Section::evaluation, Section::saving);
  const Progress page = left_by([whole](const auto& now) {
    const ProgressSection section(whole);
    const ProgressSection forward(Section::forward);
    const acc::detail::ProgressCollective gather("gather");
    require(now().section == whole);
    require(now().collective == "gather");
  });
  CHECK(page.collectives == 1);
}

TEST_CASE("progress: a collective has a name while it goes on", "[runtime]") {
  const Progress page = left_by([](const auto& now) {
    const ProgressSection backward(Section::backward);
    {
      const acc::detail::ProgressCollective reduce("all_reduce");
      require(now().section == Section::communication);
      require(now().collective == "all_reduce");
    }
    require(now().section == Section::backward);
    require(now().collective.empty());
  });
  CHECK(page.collectives == 1);
}

TEST_CASE("progress: a loop of one's own says what it has done", "[runtime]") {
  const Progress page = left_by([](const auto&) {
    report_step({.samples = 8, .tokens = 1024, .loss = 3.5});
    report_step();
    report_step({.samples = 4});
  });
  CHECK(page.steps == 3);
  CHECK(page.samples == 12);
  CHECK(page.tokens == 1024);
  CHECK(page.loss == 3.5);
}

TEST_CASE("progress: several optimizers that step once each in a step are one step", "[runtime]") {
  const Progress page = left_by([](const auto&) {
    const OptimizerSteps generator;
    const OptimizerSteps discriminator;
    for (int step = 0; step < 3; ++step) {
      generator.report();
      discriminator.report();
    }
  });
  CHECK(page.steps == 3);
}

TEST_CASE("progress: the steps of a second training are counted after those of the first", "[runtime]") {
  SECTION("its optimizer comes when the first one is gone") {
    const Progress page = left_by([](const auto&) {
      for (int training = 0; training < 2; ++training) report_steps(OptimizerSteps(), 4);
    });
    CHECK(page.steps == 8);
  }
  SECTION("the first optimizer lives on: a step shows that it is over, and counts for none") {
    const Progress page = left_by([](const auto&) {
      const OptimizerSteps first;
      const OptimizerSteps second;
      report_steps(first, 4);
      report_steps(second, 4);
    });
    CHECK(page.steps == 7);
  }
  SECTION("the first optimizer lives on, and each step has one of its own: after nine steps they count") {
    const Progress page = left_by([](const auto&) {
      const OptimizerSteps first;
      report_steps(first, 4);
      for (int step = 0; step < 20; ++step) report_steps(OptimizerSteps(), 1);
    });
    CHECK(page.steps == 4 + 20 - 9);
  }
  SECTION("after a Trainer: it is another training, whose steps begin at 0") {
    const Progress page = left_by([](const auto&) {
      {
        const acc::detail::ProgressTraining training(100);
        acc::detail::report_training_steps(101);
      }
      report_steps(OptimizerSteps(), 4);
    });
    CHECK(page.steps == 4);
    CHECK(page.step_scope == StepScope::another_training);
  }
}

TEST_CASE("progress: whoever counts its steps itself is not counted again", "[runtime]") {
  SECTION("a loop") {
    const Progress page = left_by([](const auto&) {
      report_step();
      report_steps(OptimizerSteps(), 50);
    });
    CHECK(page.steps == 1);
  }
  SECTION("a training, which may begin again") {
    const Progress page = left_by([](const auto& now) {
      {
        const acc::detail::ProgressTraining first(100);
        report_steps(OptimizerSteps(), 1);
        acc::detail::report_training_steps(101);
        require(now().steps == 101);
      }
      const acc::detail::ProgressTraining second(0);
      report_steps(OptimizerSteps(), 1);
      acc::detail::report_training_steps(1);
    });
    CHECK(page.steps == 1);
  }
}

TEST_CASE("progress: a program that says which step it is counts over restarts", "[runtime]") {
  const Progress counted = left_by([](const auto&) { report_step(); });
  CHECK(counted.step_scope == StepScope::process);
  const Progress said = left_by([](const auto&) {
    report_step({.global_step = 901});
    report_step({.global_step = 902, .samples = 8});
  });
  CHECK(said.steps == 902);
  CHECK(said.samples == 8);
  CHECK(said.step_scope == StepScope::training);
  const Progress resumed = left_by([](const auto&) { const acc::detail::ProgressTraining training(5); });
  CHECK(resumed.steps == 5);
  CHECK(resumed.step_scope == StepScope::training);
}

TEST_CASE("progress: the thread that trains counts, others do not", "[runtime]") {
  const Progress page = left_by([](const auto& now) {
    report_steps(OptimizerSteps(), 1);
    std::thread([&] {
      const ProgressSection saving(Section::saving);
      report_steps(OptimizerSteps(), 50);
      require(now().section == Section::other);
    }).join();
  });
  CHECK(page.steps == 1);
}

TEST_CASE("progress: a thread that trains counts, also after one that only read or evaluated", "[runtime]") {
  const Section first = GENERATE(Section::data, Section::evaluation);
  const Progress page = left_by([first](const auto& now) {
    std::promise<void> entered;
    std::promise<void> trained;
    std::thread other([&] {
      {
        const ProgressSection section(first);
        entered.set_value();
        trained.get_future().wait();
      }
      const ProgressSection section(first);
      require(now().section == Section::forward);
    });
    entered.get_future().wait();
    {
      const ProgressSection forward(Section::forward);
      require(now().section == Section::forward);
      trained.set_value();
      other.join();
      require(now().section == Section::forward);
    }
    report_steps(OptimizerSteps(), 1);
  });
  CHECK(page.steps == 1);
  CHECK(page.section == Section::other);
}

TEST_CASE("progress: after a thread that has trained and ended the next one counts", "[runtime]") {
  const Progress page = left_by([](const auto&) {
    std::thread([] { report_steps(OptimizerSteps(), 1); }).join();
    report_steps(OptimizerSteps(), 1);
  });
  CHECK(page.steps == 2);
}

TEST_CASE("progress: a fork of a worker does not write its page", "[runtime]") {
  const Progress page = left_by([](const auto&) {
    report_steps(OptimizerSteps(), 1);
    const pid_t fork = ::fork();
    if (fork == 0) {
      report_steps(OptimizerSteps(), 50);
      ::_exit(0);
    }
    ::waitpid(fork, nullptr, 0);
  });
  CHECK(page.steps == 1);
}

TEST_CASE("progress: a fork in a section, or in a collective, does not end the worker's", "[runtime]") {
  const Progress page = left_by([](const auto& now) {
    const ProgressSection data(Section::data);
    pid_t fork = 0;
    {
      const acc::detail::ProgressCollective gather("gather");
      fork = ::fork();
      if (fork != 0) {
        ::waitpid(fork, nullptr, 0);
        require(now().collective == "gather");
        require(now().section == Section::communication);
      }
    }
    if (fork == 0) ::_exit(0);
  });
  CHECK(page.collectives == 1);
}

TEST_CASE("progress: without a launcher nothing happens", "[runtime]") {
  CHECK(test::in_child([] {
          ::unsetenv("ACC_PROGRESS");
          const ProgressSection section(Section::data);
          const acc::detail::ProgressCollective reduce("all_reduce");
          report_step({.loss = 1});
          return 0;
        }) == 0);
}

}  // namespace progress_test
