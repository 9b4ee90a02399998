// The cases of c_api_test.c, a C11 program. Owns nothing; each case opens an engine of its own on the device
// and gives back NULL, or a text that says what is wrong, good until the next call.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
const char* c_api_run(const char* name, const char* device);
/* Why the device cannot be tested here; NULL where it can. */
const char* c_api_skip(const char* device);
#ifdef __cplusplus
}
#endif
