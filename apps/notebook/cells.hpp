// SPDX-License-Identifier: Apache-2.0
// What the cells of a notebook run in. Compiled by the interpreter when a kernel starts.
#pragma once

#include <ATen/core/Formatting.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <cxxabi.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <ostream>
#include <sstream>
#include <streambuf>
#include <string>
#include <string_view>
#include <typeinfo>

namespace acc_cells {

std::string type_name(const std::type_info& type) {
  int status = 0;
  char* name = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  const std::string text = status == 0 ? name : type.name();
  std::free(name);
  return text;
}

// The interpreter writes what it has against a cell to std::cerr: before the cell runs the compiler's
// messages, and then `compilation failed: TEXT` for an exception that nobody caught, while it handles that.
class Diagnostics : public std::streambuf {
 public:
  void compile() {
    text.str("");
    exception.clear();
    message.clear();
    runs_ = false;
    std::cerr.flush();
    real_ = std::cerr.rdbuf(this);
  }
  void run() { runs_ = true; }
  void end() {
    if (real_) std::cerr.rdbuf(real_);
    real_ = nullptr;
    std::cout.flush();
    std::fflush(stdout);
  }

  std::ostringstream text;
  std::string exception;  // its type; empty: there was none
  std::string message;

 protected:
  std::streamsize xsputn(const char* given, std::streamsize size) override {
    if (runs_ && exception.empty() && std::string_view(given, size).starts_with("compilation failed"))
      see_exception();
    if (!runs_ || !exception.empty()) {
      text.write(given, size);
      return size;
    }
    return real_->sputn(given, size);
  }
  int overflow(int given) override {
    const char letter = static_cast<char>(given);
    return given == EOF || xsputn(&letter, 1) == 1 ? 0 : EOF;
  }
  int sync() override { return runs_ && real_ ? real_->pubsync() : 0; }

 private:
  void see_exception() {
    const std::exception_ptr current = std::current_exception();
    if (!current) return;
    if (const std::type_info* type = abi::__cxa_current_exception_type()) exception = type_name(*type);
    try {
      std::rethrow_exception(current);
    } catch (const c10::Error& error) {
      message = error.what_without_backtrace();
    } catch (const std::exception& error) {
      message = error.what();
    } catch (...) {
    }
  }

  std::streambuf* real_ = nullptr;
  bool runs_ = false;
};

Diagnostics diagnostics;

bool run() {
  diagnostics.run();
  return true;
}

// As Python takes it: a reference, or a pointer to a function.
template <class T>
T& value_of(T& value) {
  return value;
}
template <class Result, class... Parameters>
auto value_of(Result (&function)(Parameters...)) {
  return &function;
}

// Whole lines at once, as they come: the kernel's standard output is a pipe.
void write_lines() {
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 16);
}

}  // namespace acc_cells

// How the interpreter shows the value of a cell's last expression.
namespace cling {
std::string printValue(const at::Tensor* tensor) {
  std::ostringstream text;
  text << (tensor->dim() > 0 ? "\n" : "") << *tensor;
  return text.str();
}
}  // namespace cling
