/* Which variant of the kernels this processor can run, and what the library was built from. Compiled once, for any
   processor. */
#if defined(_WIN32)
#define SHOWN __declspec(dllexport)
#else
#define SHOWN __attribute__((visibility("default")))
#endif

#if defined(__x86_64__)

/* By hand: __builtin_cpu_supports needs a runtime that not every compiler links into a shared library. */
static void cpuid(unsigned leaf, unsigned *b, unsigned *c) {
    unsigned a = leaf, d;
    *c = 0;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(*b), "+c"(*c), "=d"(d));
}

static unsigned highest_leaf(void) {
    unsigned a = 0, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return a;
}

/* Registers that the operating system saves when it switches threads. */
static unsigned saved_registers(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static int has_all(unsigned word, unsigned wanted) { return (word & wanted) == wanted; }

/* 0: baseline, 1: avx2, 2: avx512; each needs what the flags in hatch_build.py name. */
SHOWN int best_variant(void) {
    enum { OSXSAVE = 1u << 27, AVX = 1u << 28 };
    enum { BMI = 1u << 3, AVX2 = 1u << 5, BMI2 = 1u << 8 };
    enum { AVX512F = 1u << 16, AVX512DQ = 1u << 17, AVX512CD = 1u << 28, AVX512BW = 1u << 30 };
    const unsigned avx512vl = 1u << 31;
    enum { OF_256_BITS = 0x6, OF_512_BITS = 0xe6 };
    unsigned b, c, features;
    if (highest_leaf() < 7) return 0;
    cpuid(1, &b, &c);
    if (!has_all(c, OSXSAVE | AVX)) return 0;
    cpuid(7, &features, &c);
    unsigned saved = saved_registers();
    if (!has_all(features, AVX2 | BMI | BMI2) || !has_all(saved, OF_256_BITS)) return 0;
    unsigned wide = AVX512F | AVX512DQ | AVX512CD | AVX512BW | avx512vl;
    return has_all(features, wide) && has_all(saved, OF_512_BITS) ? 2 : 1;
}

#else

SHOWN int best_variant(void) { return 0; }

#endif

/* The version of the package, and the fingerprint of the C sources. */
SHOWN const char *sources(void) { return SOURCES; }
