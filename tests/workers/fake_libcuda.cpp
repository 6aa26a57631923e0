// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 for machines without a driver: there, and good for nothing.
extern "C" int fake_libcuda() {
  return 0;
}
