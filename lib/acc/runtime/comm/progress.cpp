// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/progress.hpp"

#include <pthread.h>

#include <atomic>
#include <exception>
#include <mutex>

#include "acc/base/environment.hpp"

namespace acc {
namespace {

std::atomic<ProgressPage*> own_page = nullptr;
// The thread that trains, by the address of something of its own.
std::atomic<const char*> writer = nullptr;

// The program, or a Trainer, says which step it is.
std::atomic<bool> steps_are_said = false;

// A fork has a rank's page, but is not the rank's process. A worker that was forked opens its own.
void forget_page() {
  own_page = nullptr;
  writer = nullptr;
}

// It lives until the process ends: threads and destructors may write to the last.
ProgressPage* open_page() {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  if (ProgressPage* page = own_page) return page;
  static std::once_flag once;
  std::call_once(once, [] { ::pthread_atfork(nullptr, nullptr, forget_page); });
  return own_page = new ProgressPage(Environment::of_process().get("ACC_PROGRESS"));  // NOLINT
}

// Null: nobody reads, or another thread writes.
ProgressPage* page_to_write(bool trains) noexcept try {
  ProgressPage* page = own_page.load(std::memory_order_acquire);
  if (page == nullptr) page = open_page();
  if (!page->is_open()) return nullptr;
  static thread_local const char self = 0;
  const char* expected = nullptr;
  if (trains && writer.compare_exchange_strong(expected, &self)) return page;
  expected = writer;
  return expected == &self || (!trains && expected == nullptr) ? page : nullptr;
} catch (const std::exception&) {
  return nullptr;
}

bool is_training(Section section) {
  return section != Section::communication && section != Section::saving && section != Section::other;
}

bool is_whole(Section section) {
  return section == Section::evaluation || section == Section::saving;
}

}  // namespace

ProgressSection::ProgressSection(Section section) noexcept : page_(page_to_write(is_training(section))) {
  if (page_ == nullptr) return;
  before_ = page_->section();
  if (is_whole(before_)) {
    page_ = nullptr;
  } else {
    page_->enter(section);
  }
}

ProgressSection::~ProgressSection() {
  if (page_ != nullptr) page_->enter(before_);
}

void report_step(const StepProgress& progress) noexcept {
  ProgressPage* page = page_to_write(true);
  if (page == nullptr) return;
  steps_are_said = true;
  page->add_step();
  if (progress.samples != 0) page->add_samples(progress.samples);
  if (progress.tokens != 0) page->add_tokens(progress.tokens);
  if (progress.loss) page->set_loss(*progress.loss);
}

namespace detail {

void report_optimizer_steps(std::int64_t steps) noexcept {
  if (steps_are_said) return;
  if (ProgressPage* page = page_to_write(true)) page->set_steps(steps);
}

ProgressTraining::ProgressTraining(std::int64_t steps) noexcept {
  steps_are_said = true;
  if (ProgressPage* page = page_to_write(true)) page->restart_steps(steps);
}

ProgressTraining::~ProgressTraining() {
  steps_are_said = false;
}

void report_training_steps(std::int64_t steps) noexcept {
  if (ProgressPage* page = page_to_write(true)) page->set_steps(steps);
}

void report_loss(double loss) noexcept {
  if (ProgressPage* page = page_to_write(true)) page->set_loss(loss);
}

ProgressCollective::ProgressCollective(std::string_view name) noexcept
    : section_(Section::communication), page_(page_to_write(false)) {
  if (page_ != nullptr) page_->begin_collective(name);
}

ProgressCollective::~ProgressCollective() {
  if (page_ != nullptr) page_->end_collective();
}

}  // namespace detail
}  // namespace acc
