// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/version.h>

#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 11
#define ACC_GLOO_PRINTS
#include <atomic>
#include <iostream>
#include <mutex>
#include <streambuf>
#endif

namespace acc::detail {

#ifdef ACC_GLOO_PRINTS
/// What std::cout writes to while some threads connect: drops what these write.
class ConnectingOutput : public std::streambuf {
 public:
  /// Never destroyed: another thread may still be in it.
  static ConnectingOutput& instance() {
    static auto& output = *new ConnectingOutput;
    return output;
  }

  void begin() {
    const std::lock_guard lock(mutex_);
    connects_ = true;
    // A stream that has failed writes nothing, and rdbuf() would make it forget that.
    if (num_threads_++ > 0 || !std::cout.good()) return;
    // Others may write from the exchange on, and one of them may have kept this object's address.
    if (std::cout.rdbuf() != this) target_ = std::cout.rdbuf();
    std::cout.rdbuf(this);
  }
  void end() {
    const std::lock_guard lock(mutex_);
    connects_ = false;
    if (--num_threads_ == 0 && std::cout.rdbuf() == this) std::cout.rdbuf(target_);
  }

 protected:
  int_type overflow(int_type character) override {
    const bool writes = !connects_ && !traits_type::eq_int_type(character, traits_type::eof());
    return writes ? target_.load()->sputc(traits_type::to_char_type(character))
                  : traits_type::not_eof(character);
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    return connects_ ? size : target_.load()->sputn(text, size);
  }
  int sync() override { return connects_ ? 0 : target_.load()->pubsync(); }

 private:
  inline static thread_local bool connects_ = false;

  std::mutex mutex_ = {};
  int num_threads_ = 0;
  std::atomic<std::streambuf*> target_ = nullptr;
};
#endif

/// While it exists, Gloo prints nothing when this thread connects to others: that of LibTorch 2.9 writes a
/// line for each process to std::cout.
class QuietGloo {
 public:
#ifdef ACC_GLOO_PRINTS
  QuietGloo() { ConnectingOutput::instance().begin(); }
  ~QuietGloo() { ConnectingOutput::instance().end(); }
#else
  QuietGloo() = default;
  ~QuietGloo() = default;
#endif
  QuietGloo(const QuietGloo&) = delete;
  QuietGloo& operator=(const QuietGloo&) = delete;
};

}  // namespace acc::detail
