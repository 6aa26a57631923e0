// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 without functions, for machines without a driver.
extern "C" int fake_libcuda() {
  return 0;
}
