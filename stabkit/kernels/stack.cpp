// Sub-layers of a Transformer, forward and backward, as one call: the residual that all methods share,
//
//     y = N_out( ω·x + γ·N_branch( G( κ·N_in(x) ) ) ),
//
// with attention or a feed-forward as G and a part at any of its places (`methods/base.py`). The same formula in torch's
// own operations is `model/residual.py`, which is this file's reference. It knows neither torch nor Python: it takes
// addresses and shapes, so that one library serves every version of both.
//
// d width, E = d/H of a head, f inner width; T queries and S keys of B sentences, n = T·B and m = S·B rows. States are
// (T, B, d); queries, keys and values stay as their maps give them, (T, B, H, roles, E). Rows are taken one after
// another through all that is done to a row, so that they are in the nearest cache; sums over rows go by blocks of 64.
// NaN and ∞ pass as they do in torch; nothing here is compiled with -ffast-math.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

typedef int64_t I;

extern "C" {

enum Kind : I { SELF, CROSS, RELU, SWIGLU };
enum Code : I { NONE, LAYER, RMS, DYT, SHIFT, SCALE_SHIFT, HEADS, RMS_ACROSS };
enum Place : I { IN, BRANCH, OUT, FIRST, MID, LAST, END, QUERY, KEY, VALUE, PLACES };

// Indices are into the call's tables of parameters and gradients; −1: none.
struct Sublayer {
    I kind, causal, inner;      // inner: f of a feed-forward
    I parts[PLACES], at[PLACES];  // the code at a place, and the index of its first parameter
    I map1, bias1;              // W_QKV of self-attention, W_Q of cross-attention, W₁ (with W_g before it) of a feed-forward
    I memory, memory_bias;      // W_KV of cross-attention
    I map2, bias2;              // W_O, W₂
    I omega_at, omega_vector, gamma_at, gamma_vector;
    double omega, gamma, kappa;  // where no parameter holds them
};

struct Call {
    I doubles, queries, keys, batch, width, heads, sublayers;
    I keep;                     // for `stabkit_backward`: 1
    const Sublayer* sublayer;
    void* const* parameters;    // addresses
    void* const* gradients;     // to be added to; 0 where none is wanted
    const void* x;              // (T, B, d)
    const void* memory;         // (S, B, d), or 0
    const void* mask;           // (B, S) added to the scores of all but causal attention, or 0
    const void* rotary;         // (2, positions, E/2) cosines and sines, or 0
    I positions;
    void* const* dropped;       // of each sub-layer (T, B, d) factors of its branch, or 0
    void* work;                 // what `stabkit_size` asked for
    void* y;                    // (T, B, d), written
    // Of each sub-layer addresses, 0 where nothing is asked for: γ·f (T, B, d); and, without `keep`, the sum, y, the
    // scores (B·H, T, S up to the next multiple of 16, −∞ there), and the lengths (T, B) of γ·f, of ω·x and of the sum.
    void* const* given;
    // backward alone
    const void* dy;             // (T, B, d)
    const void* dbranch;        // (T, B, d) of the last sub-layer's γ·f, or 0
    void* dx;                   // (T, B, d), written
    void* dmemory;              // (S, B, d), added to, or 0
    void* const* dsums;         // of each sub-layer (T, B, d), the gradient of its sum, written where an address is given
};

// What stands behind a stack: logits, and the cross-entropy with label smoothing ε as a mean over the rows asked for,
// −(1 − ε)·log p(right) − ε·mean over classes of log p.
struct Head {
    I doubles, rows, width, classes, ignored;  // the target of rows that are not asked for
    double smoothing;
    const void* x;              // (n, d)
    const void* weight;         // (V, d)
    const I* target;            // (n)
    void* logits;               // (n, V), written
    void* work;                 // what `stabkit_head_size` asked for
    double loss, right, count;  // written: the loss, −log p(right) alone, and the rows asked for
    // backward alone
    double dloss;
    void* dx;                   // (n, d), written
    void* dweight;              // (V, d), added to, or 0
};
}

namespace {

const I PAD = 16;    // score rows are padded to a multiple of it
const I BLOCK = 64;  // rows whose sums are made before they are added to the total
const double EPS = 1e-5;
const I GIVEN = 7;   // addresses of a sub-layer in `given`

inline I padded(I n) { return (n + PAD - 1) / PAD * PAD; }

// A size that the compiler is told, so that it can unroll what runs over it; 0: one that only the call knows.
template <I N> struct Size {
    Size(I) {}
    constexpr operator I() const { return N; }
};
template <> struct Size<0> {
    const I value;
    Size(I size) : value(size) {}
    operator I() const { return value; }
};

// ---- vectors, as wide as the processor's

#ifdef __AVX512F__
#define BYTES 64
#define ROWS 12  // of a tile: with two vectors a row its sums fill the registers
#else
#define BYTES 32
#define ROWS 6
#endif

template <class T> struct Lanes;
template <> struct Lanes<float> {
    typedef float V __attribute__((vector_size(BYTES), aligned(4), may_alias));
    typedef int32_t W __attribute__((vector_size(BYTES)));
};
template <> struct Lanes<double> {
    typedef double V __attribute__((vector_size(BYTES), aligned(8), may_alias));
};

template <class T> using Vec = typename Lanes<T>::V;
template <class T> constexpr I lanes() { return BYTES / sizeof(T); }
template <class T> inline Vec<T> load(const T* p) { return *(const Vec<T>*)p; }
template <class T> inline void store(T* p, Vec<T> v) { *(Vec<T>*)p = v; }
template <class T> inline Vec<T> all(T a) { return a - Vec<T>{}; }

// All entries of a vector as one, by halves.
template <class T, int N> struct Fold {
    template <class F> static T of(const T* x, F f) {
        typedef T H __attribute__((vector_size(N / 2 * sizeof(T)), aligned(sizeof(T)), may_alias));
        const H both = f(*(const H*)x, *(const H*)(x + N / 2));
        T half[N / 2];
        *(H*)half = both;
        return Fold<T, N / 2>::of(half, f);
    }
};
template <class T> struct Fold<T, 2> {
    template <class F> static T of(const T* x, F f) { return f(x[0], x[1]); }
};
template <class T, class F> inline T folded(Vec<T> v, F f) {
    T x[lanes<T>()];
    store(x, v);
    return Fold<T, lanes<T>()>::of(x, f);
}

// exp: 2^n·e^r with |r| ≤ ln 2/2 and a polynomial of six terms (relative error below 2e-7); 0 below −87.
inline Vec<float> exponential(Vec<float> x) {
    typedef Lanes<float>::W W;
    Vec<float> z = x > 88.0f ? all(88.0f) : x;
    z = z < -88.0f ? all(-88.0f) : z;
    Vec<float> shift = all(12582912.0f);  // 1.5·2²³: what is added to it is rounded to an integer
    Vec<float> t = z * 1.44269504088896341f + shift;
    Vec<float> n = t - shift;
    Vec<float> r = z - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    Vec<float> p = all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    W bits;
    std::memcpy(&bits, &t, sizeof bits);
    bits = (bits - 0x4B400000 + 127) << 23;
    Vec<float> scale;
    std::memcpy(&scale, &bits, sizeof scale);
    p = x < -87.0f ? all(0.0f) : p * scale;
    return x != x ? x : p;
}

inline Vec<double> exponential(Vec<double> x) {
    for (I i = 0; i < lanes<double>(); ++i) x[i] = std::exp(x[i]);
    return x;
}

// tanh: an odd polynomial up to 0.625, 1 − 2/(e^{2|x|} + 1) beyond.
inline Vec<float> tangent(Vec<float> x) {
    Vec<float> size = x < 0.0f ? -x : x, s = x * x;
    Vec<float> p = all(-5.70498872745e-3f);
    p = p * s + 2.06390887954e-2f;
    p = p * s - 5.37397155531e-2f;
    p = p * s + 1.33314422036e-1f;
    p = p * s - 3.33332819422e-1f;
    p = p * s * x + x;
    Vec<float> far = 1.0f - 2.0f / (exponential(2.0f * size) + 1.0f);
    far = x < 0.0f ? -far : far;
    return size < 0.625f ? p : far;
}

inline Vec<double> tangent(Vec<double> x) {
    for (I i = 0; i < lanes<double>(); ++i) x[i] = std::tanh(x[i]);
    return x;
}

// One function of whole rows of any length; the rest of a row goes through a vector of its own.
template <class T, class F> inline void each(I size, const T* x, T* y, F of) {
    const I step = lanes<T>();
    I i = 0;
    for (; i + step <= size; i += step) store(y + i, of(load(x + i)));
    if (i < size) {
        T rest[BYTES / sizeof(T)] = {};
        std::memcpy(rest, x + i, (size - i) * sizeof(T));
        store(rest, of(load(rest)));
        std::memcpy(y + i, rest, (size - i) * sizeof(T));
    }
}

template <class T> inline void logistic(I size, const T* x, T* y) {
    each(size, x, y, [](Vec<T> v) { return T(1) / (T(1) + exponential(-v)); });
}
template <class T> inline void tangents(I size, const T* x, T* y, T alpha) {
    each(size, x, y, [alpha](Vec<T> v) { return tangent(v * alpha); });
}

// ---- matrix products, rows contiguous

// c = beta·c + A·b + bias of R rows and NV vectors, the sums in registers, bias (or 0) a row of them; A(i, k) = a[i·lda + k], or TURNED a[k·lda + i].
template <class T, bool TURNED, int R, int NV>
inline __attribute__((always_inline)) void tile(
    I K, const T* a, I lda, const T* b, I ldb, T beta, const T* bias, T* c, I ldc
) {
    const I step = lanes<T>();
    Vec<T> sum[R][NV];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) sum[r][v] = bias ? load(bias + v * step) : Vec<T>{};
    for (I k = 0; k < K; ++k) {
        Vec<T> row[NV];
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) row[v] = load(b + k * ldb + v * step);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
            const Vec<T> factor = all(TURNED ? a[k * lda + r] : a[r * lda + k]);
#pragma GCC unroll 2
            for (int v = 0; v < NV; ++v) sum[r][v] += factor * row[v];
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) {
            T* at = c + r * ldc + v * step;
            store(at, beta != 0 ? load(at) * beta + sum[r][v] : sum[r][v]);
        }
}

template <class T, bool TURNED, int NV>
inline void tiles(I M, I K, const T* a, I lda, const T* b, I ldb, T beta, const T* bias, T* c, I ldc) {
    const I next = TURNED ? 1 : lda;
    I i = 0;
    for (; i + ROWS <= M; i += ROWS) tile<T, TURNED, ROWS, NV>(K, a + i * next, lda, b, ldb, beta, bias, c + i * ldc, ldc);
    for (; i + 4 <= M; i += 4) tile<T, TURNED, 4, NV>(K, a + i * next, lda, b, ldb, beta, bias, c + i * ldc, ldc);
    for (; i < M; ++i) tile<T, TURNED, 1, NV>(K, a + i * next, lda, b, ldb, beta, bias, c + i * ldc, ldc);
}

// c (M, N) = A·b of matrices that fit the nearest cache; N a multiple of 16.
template <class T, bool TURNED> void small(I M, I N, I K, const T* a, I lda, const T* b, I ldb, T* c, I ldc) {
    const I step = lanes<T>();
    I j = 0;
    for (; j + 2 * step <= N; j += 2 * step) tiles<T, TURNED, 2>(M, K, a, lda, b + j, ldb, 0, nullptr, c + j, ldc);
    if (j < N) tiles<T, TURNED, 1>(M, K, a, lda, b + j, ldb, 0, nullptr, c + j, ldc);
}

// y (size, rows) of x (rows, size): by blocks of 8 × 8 in registers.
#if defined(__clang__) || __GNUC__ >= 12
#define CHOSEN(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define CHOSEN(a, b, ...) __builtin_shuffle(a, b, (W){__VA_ARGS__})
#endif
inline void eight(const float* x, I ldx, float* y, I ldy) {
    typedef float V __attribute__((vector_size(32), aligned(4), may_alias));
    typedef int32_t W __attribute__((vector_size(32), unused));
    V a[8], b[8];
    for (int i = 0; i < 8; ++i) a[i] = *(const V*)(x + i * ldx);
    for (int i = 0; i < 8; i += 2) {
        b[i] = CHOSEN(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        b[i + 1] = CHOSEN(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; ++j) {
            a[i + 2 * j] = CHOSEN(b[i + j], b[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            a[i + 2 * j + 1] = CHOSEN(b[i + j], b[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < 4; ++i) {
        *(V*)(y + i * ldy) = CHOSEN(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *(V*)(y + (i + 4) * ldy) = CHOSEN(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
inline void eight(const double* x, I ldx, double* y, I ldy) {
    for (I i = 0; i < 8; ++i)
        for (I j = 0; j < 8; ++j) y[i * ldy + j] = x[j * ldx + i];
}
template <class T> __attribute__((noinline)) void turned(const T* x, I ldx, I rows, I size, T* y, I ldy) {
    I r = 0;
    for (; r + 8 <= rows; r += 8) {
        I i = 0;
        for (; i + 8 <= size; i += 8) eight(x + r * ldx + i, ldx, y + i * ldy + r, ldy);
        for (; i < size; ++i)
            for (I k = r; k < r + 8; ++k) y[i * ldy + k] = x[k * ldx + i];
    }
    for (; r < rows; ++r)
        for (I i = 0; i < size; ++i) y[i * ldy + r] = x[r * ldx + i];
}

// Products of whole batches. torch's library (MKL) takes 1.2 to 2.5 times as long for these shapes on the AMD processors
// measured: it copies what is 64 wide, and gives them no vectors of 64 bytes (`benchmarks/products.py`).
template <class T> struct Products {
    T* pack;  // DEEP rows of a panel of b, and a tile's worth of c
    static constexpr I DEEP = 512, NEAR = 48, WIDE = 2 * lanes<T>();
    static constexpr I SIZE = DEEP * WIDE + ROWS * WIDE;

    // c (m, n) = beta·c + op(a)·op(b) + bias (n, or 0): by panels of two vectors of columns; b is copied where its rows are not there.
    template <bool TA, bool TB>
    __attribute__((noinline)) void multiply(I m, I n, I k, const T* a, const T* b, T beta, T* c, const T* bias = nullptr) const {
        const I lda = TA ? m : k, ldb = TB ? k : n;
        const I block = TA ? NEAR : DEEP;
        for (I q = 0; q < k; q += block)
            for (I j = 0; j < n; j += WIDE) {
                const I w = n - j < WIDE ? n - j : WIDE, deep = k - q < block ? k - q : block;
                const bool copied = TB || w < WIDE;
                const T *panel = copied ? pack : b + q * ldb + j, *rows = TA ? a + q * lda : a + q;
                const T over = q ? 1 : beta;
                const T* first = bias && !q ? bias + j : nullptr;  // a sum begins with it
                if (copied) {
                    if (TB) turned(b + j * ldb + q, ldb, w, deep, pack, WIDE);
                    for (I i = 0; i < deep; ++i) {
                        if (!TB) std::memcpy(pack + i * WIDE, b + (q + i) * ldb + j, w * sizeof(T));
                        for (I x = w; x < WIDE; ++x) pack[i * WIDE + x] = 0;
                    }
                }
                if (TA) {  // the rows of the next block on their way, a share with every panel: backward finds them cold
                    const I share = (block * ldb * WIDE / n + 15) / 16 * 16;
                    const T *from = b + (q + block) * ldb + j / WIDE * share, *end = b + k * ldb;
                    for (I i = 0; i < share && from + i < end; i += 64 / sizeof(T)) __builtin_prefetch(from + i, 0, 2);
                }
                const I step = copied ? WIDE : ldb;
                if (w == WIDE) {
                    tiles<T, TA, 2>(m, deep, rows, lda, panel, step, over, first, c + j, n);
                } else {  // a row of c ends inside a vector
                    T* edge = pack + DEEP * WIDE;
                    for (I i = 0; i < m; i += ROWS) {
                        const I high = m - i < ROWS ? m - i : ROWS;
                        tiles<T, TA, 2>(high, deep, TA ? rows + i : rows + i * lda, lda, panel, step, 0, nullptr, edge, WIDE);
                        for (I r = 0; r < high; ++r)
                            for (I x = 0; x < w; ++x) {
                                T* at = c + (i + r) * n + j + x;
                                const T sum = first ? edge[r * WIDE + x] + first[x] : edge[r * WIDE + x];
                                *at = over != 0 ? *at * over + sum : sum;
                            }
                    }
                }
            }
    }
    void forward(I rows, I in, I out, const T* x, const T* w, const T* bias, T* y) const {
        multiply<false, true>(rows, out, in, x, w, 0, y, bias);
    }
    void input(I rows, I in, I out, const T* dy, const T* w, T beta, T* dx) const { multiply<false, false>(rows, in, out, dy, w, beta, dx); }
    void weight(I rows, I in, I out, const T* dy, const T* x, T* dw) const {
        if (dw) multiply<true, false>(out, in, rows, dy, x, 1, dw);
    }
};

// ---- parts: what may stand at a place, a row at a time

template <class T> struct Part {
    I code = NONE, heads = 1;
    const T* p[3] = {};
    T* g[3] = {};
    T *first = nullptr, *second = nullptr;  // sums of a block of rows
    double one = 0, two = 0;
    explicit operator bool() const { return code != NONE; }
    I stats() const { return code == LAYER ? 2 : code == RMS || code == RMS_ACROSS ? 1 : 0; }  // kept of a row

    template <class N> void forward(N size, const T* x, T* y, T* stat) const {
        const T *w = p[0], *b = p[1];
        switch (code) {
        case LAYER: {
            T sum = 0, square = 0;
#pragma omp simd reduction(+ : sum)
            for (I i = 0; i < size; ++i) sum += x[i];
            const T mean = sum / size;
#pragma omp simd reduction(+ : square)
            for (I i = 0; i < size; ++i) square += (x[i] - mean) * (x[i] - mean);
            const T scale = 1 / std::sqrt(square / size + T(EPS));
#pragma omp simd
            for (I i = 0; i < size; ++i) y[i] = (x[i] - mean) * scale * w[i] + b[i];
            stat[0] = mean;
            stat[1] = scale;
            break;
        }
        case RMS:
        case RMS_ACROSS: {
            T square = 0;
#pragma omp simd reduction(+ : square)
            for (I i = 0; i < size; ++i) square += x[i] * x[i];
            const T scale = 1 / std::sqrt(square / size + T(EPS));
#pragma omp simd
            for (I i = 0; i < size; ++i) y[i] = x[i] * scale * w[i];
            stat[0] = scale;
            break;
        }
        case DYT:
            tangents(size, x, y, p[0][0]);
#pragma omp simd
            for (I i = 0; i < size; ++i) y[i] = p[2][i] + y[i] * p[1][i];
            break;
        case SHIFT:
#pragma omp simd
            for (I i = 0; i < size; ++i) y[i] = x[i] + w[0];
            break;
        case SCALE_SHIFT:
#pragma omp simd
            for (I i = 0; i < size; ++i) y[i] = b[0] * (x[i] + w[0]);
            break;
        case HEADS: {
            const I e = size / heads;
            for (I h = 0; h < heads; ++h)
#pragma omp simd
                for (I i = h * e; i < (h + 1) * e; ++i) y[i] = x[i] * w[h];
            break;
        }
        }
    }

    // dx from dy, which it may be; sums of what belongs to its parameters.
    template <class N> void backward(N size, const T* x, const T* dy, T* dx, const T* stat, T* t) {
        const T* w = p[0];
        T *__restrict by_first = first, *__restrict by_second = second;  // they lie apart from all else
        switch (code) {
        case LAYER: {
            const T mean = stat[0], scale = stat[1];
            T m1 = 0, m2 = 0;
#pragma omp simd reduction(+ : m1, m2)
            for (I i = 0; i < size; ++i) {
                const T hat = (x[i] - mean) * scale;
                by_first[i] += dy[i] * hat;
                by_second[i] += dy[i];
                m1 += dy[i] * w[i];
                m2 += dy[i] * w[i] * hat;
            }
            m1 /= size;
            m2 /= size;
#pragma omp simd
            for (I i = 0; i < size; ++i) dx[i] = scale * (dy[i] * w[i] - m1 - (x[i] - mean) * scale * m2);
            break;
        }
        case RMS:
        case RMS_ACROSS: {
            const T scale = stat[0];
            T m2 = 0;
#pragma omp simd reduction(+ : m2)
            for (I i = 0; i < size; ++i) {
                by_first[i] += dy[i] * x[i] * scale;
                m2 += dy[i] * w[i] * x[i] * scale;
            }
            m2 /= size;
#pragma omp simd
            for (I i = 0; i < size; ++i) dx[i] = scale * (dy[i] * w[i] - x[i] * scale * m2);
            break;
        }
        case DYT: {
            const T alpha = p[0][0];
            tangents(size, x, t, alpha);
            T sum = 0;
#pragma omp simd reduction(+ : sum)
            for (I i = 0; i < size; ++i) {
                by_first[i] += dy[i] * t[i];
                by_second[i] += dy[i];
                const T inner = dy[i] * p[1][i] * (1 - t[i] * t[i]);
                sum += inner * x[i];
                dx[i] = inner * alpha;
            }
            one += sum;
            break;
        }
        case SHIFT:
        case SCALE_SHIFT: {
            const T s = code == SHIFT ? T(1) : p[1][0];
            T sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
            for (I i = 0; i < size; ++i) {
                sum += dy[i];
                dot += dy[i] * (x[i] + w[0]);
                dx[i] = s * dy[i];
            }
            one += double(s) * sum;
            two += dot;
            break;
        }
        case HEADS: {
            const I e = size / heads;
            for (I h = 0; h < heads; ++h) {
                T sum = 0;
#pragma omp simd reduction(+ : sum)
                for (I i = h * e; i < (h + 1) * e; ++i) {
                    sum += dy[i] * x[i];
                    dx[i] = dy[i] * w[h];
                }
                first[h] += sum;
            }
            break;
        }
        }
    }

    void add(T* to, T* sums, I many) {
        if (to)
            for (I i = 0; i < many; ++i) to[i] += sums[i];
        std::memset(sums, 0, many * sizeof(T));
    }
    void flush(I size) {  // after a block of rows
        if (code == LAYER) add(g[0], first, size), add(g[1], second, size);
        if (code == RMS || code == RMS_ACROSS) add(g[0], first, size);
        if (code == DYT) add(g[1], first, size), add(g[2], second, size);
        if (code == HEADS) add(g[0], first, heads);
    }
    void finish() {  // after the last
        if (code == DYT || code == SHIFT || code == SCALE_SHIFT)
            if (g[0]) g[0][0] += T(one);
        if (code == SCALE_SHIFT && g[1]) g[1][0] += T(two);
    }
};

// ---- one call

template <class T> struct Buffers {  // of a sub-layer, in `work`
    T *u0 = nullptr, *u1 = nullptr, *s_in = nullptr, *s_first = nullptr;             // κ·N_in(x), I_first
    T *q0 = nullptr, *q = nullptr, *k0 = nullptr, *k = nullptr, *s_heads = nullptr;  // packed; 0: before the parts of heads
    T *p = nullptr, *logits = nullptr, *o = nullptr;
    T *h0 = nullptr, *h1 = nullptr, *h = nullptr, *s_mid = nullptr;
    T *last = nullptr, *s_last = nullptr;
    T *f0 = nullptr, *f1 = nullptr, *f2 = nullptr, *s_end = nullptr, *s_branch = nullptr;
    T *long_branch = nullptr, *long_shortcut = nullptr, *long_sum = nullptr;
    T *tap = nullptr, *sum = nullptr, *s_out = nullptr, *y = nullptr;
};

template <class T> struct Arena {
    T* base;
    I used = 0;
    T* take(I n) {
        T* at = base ? base + used : nullptr;
        used += (n + 15) / 16 * 16;
        return at;
    }
};

// WIDTH and HEAD: the width and that of a head, where the library has a form of its own for them.
template <class T, I WIDTH = 0, I HEAD = 0> struct Stack {
    const Call& c;
    const I t, s, b;
    const Size<WIDTH> d;
    const I H;
    const Size<HEAD> E;
    const I n, m, Sp_self, Sp_cross;
    const bool keep;
    Products<T> product;
    T* scratch = nullptr;  // behind all buffers, for what no later sub-layer reads

    explicit Stack(const Call& call)
        : c(call), t(c.queries), s(c.keys), b(c.batch), d(c.width), H(c.heads), E(d / H), n(t * b), m(s * b),
          Sp_self(padded(t)), Sp_cross(padded(s)), keep(c.keep) {}

    const T* value(I at) const { return at < 0 ? nullptr : (const T*)c.parameters[at]; }
    T* gradient(I at) const { return at < 0 || !c.gradients ? nullptr : (T*)c.gradients[at]; }

    Part<T> part(const Sublayer& l, Place place) const {
        Part<T> p;
        p.code = l.parts[place];
        p.heads = H;
        if (p.code == NONE) return p;
        const I many[] = {0, 2, 1, 3, 1, 2, 1, 1};
        for (I i = 0; i < many[p.code]; ++i) {
            p.p[i] = value(l.at[place] + i);
            p.g[i] = gradient(l.at[place] + i);
        }
        return p;
    }
    I inner_rows(const Sublayer& l) const { return l.kind == SWIGLU ? 2 * l.inner : l.inner; }
    bool attends(const Sublayer& l) const { return l.kind == SELF || l.kind == CROSS; }
    bool turns(const Sublayer& l) const { return l.kind == SELF && c.rotary; }
    bool headed(const Sublayer& l) const { return l.parts[QUERY] || l.parts[KEY] || l.parts[VALUE]; }

    // The same for forward and backward: what a sub-layer needs, in the order in which it is made.
    Buffers<T> buffers(I at, Arena<T>& a, T* out) const {
        const Sublayer& l = c.sublayer[at];
        T* const* given = c.given ? (T* const*)c.given + GIVEN * at : nullptr;
        Buffers<T> w;
        if (given) w.tap = given[0];
        if (given && !keep) {
            w.logits = given[3], w.long_branch = given[4], w.long_shortcut = given[5], w.long_sum = given[6];
            if (given[1] && !l.parts[OUT]) out = given[1];
            if (given[2]) out = given[2];  // without a norm after it the sum is y, and both addresses are one
        }
        const bool in = l.parts[IN];
        if (in || l.kappa != 1) w.u0 = a.take(n * d);
        if (in) w.s_in = a.take(2 * n);
        if (l.parts[FIRST]) w.u1 = a.take(n * d), w.s_first = a.take(2 * n);
        I size = l.inner;
        if (attends(l)) {
            const I roles = l.kind == SELF ? 3 : 1, Sp = l.kind == SELF ? Sp_self : Sp_cross;
            size = d;
            w.q0 = w.q = a.take(n * d * roles);
            if (headed(l)) w.q = a.take(n * d * roles);
            if (l.kind == CROSS) {
                w.k0 = w.k = a.take(m * d * 2);
                if (headed(l)) w.k = a.take(m * d * 2);
            }
            if (headed(l)) w.s_heads = a.take(2 * H * (3 * n + 2 * m));
            w.p = a.take(b * H * t * Sp);
            w.o = a.take(n * d);
        } else {
            if (l.kind == SWIGLU || l.parts[MID]) w.h0 = a.take(n * inner_rows(l));
            if (l.parts[MID]) w.h1 = a.take(n * l.inner), w.s_mid = a.take(2 * n);
            w.h = a.take(n * l.inner);
        }
        if (l.parts[LAST]) w.last = a.take(n * size), w.s_last = a.take(2 * n);
        w.f0 = w.f1 = a.take(n * d);
        if (l.parts[END]) w.f1 = a.take(n * d), w.s_end = a.take(2 * n);
        w.f2 = w.f1;
        if (l.parts[BRANCH]) w.f2 = a.take(n * d), w.s_branch = a.take(2 * n);
        w.sum = w.f2;
        if (!keep && !l.parts[OUT]) w.sum = out;
        else if (!keep && given && given[1]) w.sum = given[1];
        else if (l.gamma_at >= 0) w.sum = a.take(n * d);  // γ's gradient asks for what it multiplied
        w.y = w.sum;
        if (l.parts[OUT]) w.y = keep ? a.take(n * d) : out, w.s_out = a.take(2 * n);
        return w;
    }

    // Elements of `work`: all sub-layers' where they are kept; else two states in turn, and the largest.
    I size() const {
        Arena<T> a{nullptr};
        I largest = 0;
        for (I i = 0; i < c.sublayers; ++i) {
            buffers(i, a, nullptr);
            if (!keep) largest = a.used > largest ? a.used : largest, a.used = 0;
        }
        return (keep ? a.used : largest + 2 * ((n * d + 15) / 16 * 16)) + scratch_size();
    }

    I widest() const {
        I most = 3 * d;
        for (I i = 0; i < c.sublayers; ++i) most = inner_rows(c.sublayer[i]) > most ? inner_rows(c.sublayer[i]) : most;
        return most;
    }
    // Of one head: its matrices, forward and backward; of a backward pass what goes from sub-layer to sub-layer.
    I head_size() const {
        const I L = t > s ? t : s, Ep = padded(E), Sp = Sp_self > Sp_cross ? Sp_self : Sp_cross;
        return (5 * L + 2 * Sp) * Ep + t * Sp + 64;
    }
    I row_size() const { return 8 * widest() + 16 * d; }
    I scratch_size() const { return head_size() + row_size() + Products<T>::SIZE + 16 + (keep ? n * (5 * d + 2 * widest()) + m * 2 * d + 7 * 16 : 0); }
    void begin_scratch() {
        scratch = (T*)c.work + size() - scratch_size();
        product.pack = scratch + head_size() + row_size();
    }
    T* head_scratch() const { return scratch; }
    // Zeros, for sums over rows.
    T* row_scratch() const {
        T* at = scratch + head_size();
        std::memset(at, 0, row_size() * sizeof(T));
        return at;
    }

    // ---- forward

    void forward() {
        Arena<T> a{(T*)c.work};
        begin_scratch();
        T* turn[2] = {nullptr, nullptr};
        if (!keep) turn[0] = a.take(n * d), turn[1] = a.take(n * d);
        const I begin = a.used;
        const T* x = (const T*)c.x;
        for (I i = 0; i < c.sublayers; ++i) {
            const Sublayer& l = c.sublayer[i];
            if (!keep) a.used = begin;
            const Buffers<T> w = buffers(i, a, turn[i % 2]);
            const T* u = entering(l, w, x);
            const T* last = attends(l) ? attention(l, w, u) : feed_forward(l, w, u);
            product.forward(n, attends(l) ? I(d) : l.inner, d, last, value(l.map2), value(l.bias2), w.f0);
            leaving(l, w, x, c.dropped ? (const T*)c.dropped[i] : nullptr);
            x = w.y;
        }
        std::memcpy(c.y, x, n * d * sizeof(T));
    }

    const T* entering(const Sublayer& l, const Buffers<T>& w, const T* x) const {
        if (!w.u0 && !w.u1) return x;
        const Part<T> in = part(l, IN), first = part(l, FIRST);
        for (I r = 0; r < n; ++r) {
            const T* u = x + r * d;
            if (w.u0) {
                T* v = w.u0 + r * d;
                if (in) in.forward(d, u, v, w.s_in + 2 * r), u = v;
                if (l.kappa != 1)
                    for (I i = 0; i < d; ++i) v[i] = u[i] * T(l.kappa);
                u = v;
            }
            if (first) first.forward(d, u, w.u1 + r * d, w.s_first + 2 * r);
        }
        return w.u1 ? w.u1 : w.u0;
    }
    const T* entered(const Buffers<T>& w, const T* x) const { return w.u1 ? w.u1 : w.u0 ? w.u0 : x; }

    const T* feed_forward(const Sublayer& l, const Buffers<T>& w, const T* u) const {
        const I f = l.inner, wide = inner_rows(l);
        const Part<T> mid = part(l, MID), last = part(l, LAST);
        T* h0 = w.h0 ? w.h0 : w.h;
        product.forward(n, d, wide, u, value(l.map1), value(l.bias1), h0);
        for (I r = 0; r < n; ++r) {
            T *x = h0 + r * wide, *h = w.h + r * f;
            const T* gate = x;
            if (mid) mid.forward(f, x, w.h1 + r * f, w.s_mid + 2 * r), gate = w.h1 + r * f;
            if (l.kind == RELU) {
                for (I i = 0; i < f; ++i) h[i] = gate[i] < 0 ? T(0) : gate[i];  // NaN stays
            } else {
                const T* up = x + f;
                logistic(f, gate, h);
#pragma omp simd
                for (I i = 0; i < f; ++i) h[i] = gate[i] * h[i] * up[i];
            }
            if (last) last.forward(f, h, w.last + r * f, w.s_last + 2 * r);
        }
        return w.last ? w.last : w.h;
    }

    // What of a packed tensor (positions, B, H, roles, E) is one role's: its part, then its turn by position.
    void of_heads(const Sublayer& l, const T* from, T* to, I rows, I roles, I role, Place place, T* stat, bool turned) const {
        const I wide = H * roles * E, half = E / 2;
        const Part<T> p = part(l, place);
        T* row = row_scratch();
        for (I r = 0; r < rows; ++r) {
            const T* x = from + r * wide + role * E;
            T* y = to + r * wide + role * E;
            if (p.code == RMS_ACROSS) {
                for (I h = 0; h < H; ++h) std::memcpy(&row[h * E], x + h * roles * E, E * sizeof(T));
                p.forward(d, row, row + d, stat + 2 * H * r);
                for (I h = 0; h < H; ++h) std::memcpy(y + h * roles * E, &row[d + h * E], E * sizeof(T));
            } else if (p) {
                for (I h = 0; h < H; ++h) p.forward(E, x + h * roles * E, y + h * roles * E, stat + 2 * (H * r + h));
            } else if (x != y) {
                for (I h = 0; h < H; ++h) std::memcpy(y + h * roles * E, x + h * roles * E, E * sizeof(T));
            }
            if (!turned) continue;
            const T *cos = (const T*)c.rotary + r / b * half, *sin = cos + c.positions * half;
            for (I h = 0; h < H; ++h) {
                T *one = y + h * roles * E, *two = one + half;
                for (I i = 0; i < half; ++i) {
                    const T a = one[i], z = two[i];
                    one[i] = a * cos[i] - z * sin[i];
                    two[i] = z * cos[i] + a * sin[i];
                }
            }
        }
    }

    // The same backward, in place: d from of what left to of what entered.
    void of_heads_backward(const Sublayer& l, const T* from, T* dy, I rows, I roles, I role, Place place, const T* stat, bool turned) const {
        const I wide = H * roles * E, half = E / 2;
        Part<T> p = part(l, place);
        T *row = row_scratch(), *sums = row + 2 * d;
        p.first = sums, p.second = sums + d;
        for (I r = 0; r < rows; ++r) {
            const T* x = from + r * wide + role * E;
            T* g = dy + r * wide + role * E;
            if (turned) {
                const T *cos = (const T*)c.rotary + r / b * half, *sin = cos + c.positions * half;
                for (I h = 0; h < H; ++h) {
                    T *one = g + h * roles * E, *two = one + half;
                    for (I i = 0; i < half; ++i) {
                        const T a = one[i], z = two[i];
                        one[i] = a * cos[i] + z * sin[i];
                        two[i] = z * cos[i] - a * sin[i];
                    }
                }
            }
            if (p.code == RMS_ACROSS) {
                for (I h = 0; h < H; ++h) {
                    std::memcpy(&row[h * E], x + h * roles * E, E * sizeof(T));
                    std::memcpy(&row[d + h * E], g + h * roles * E, E * sizeof(T));
                }
                p.backward(d, row, row + d, row + d, stat + 2 * H * r, sums + 2 * d);
                for (I h = 0; h < H; ++h) std::memcpy(g + h * roles * E, &row[d + h * E], E * sizeof(T));
            } else if (p) {
                for (I h = 0; h < H; ++h)
                    p.backward(E, x + h * roles * E, g + h * roles * E, g + h * roles * E, stat + 2 * (H * r + h), &sums[2 * d]);
            }
            if (p && (r + 1) % BLOCK == 0) p.flush(p.code == RMS_ACROSS ? I(d) : I(E));
        }
        if (p) p.flush(p.code == RMS_ACROSS ? I(d) : I(E)), p.finish();
    }

    // Where a role of one head lies: its rows of E in a packed tensor.
    struct Role {
        const T* x;
        I next;
    };
    Role role(const T* packed, I roles, I which, I sentence, I head) const {
        return {packed + ((sentence * H + head) * roles + which) * E, b * H * roles * E};
    }
    // (rows, E) with zeros to a width of ldy and a height of `high`.
    void rows_of(Role at, I rows, I high, T scale, T* y, I ldy) const {
        for (I r = 0; r < rows; ++r) {
            const T* x = at.x + r * at.next;
            T* to = y + r * ldy;
#pragma omp simd
            for (I i = 0; i < E; ++i) to[i] = x[i] * scale;
            for (I i = E; i < ldy; ++i) to[i] = 0;
        }
        if (high > rows) std::memset(y + rows * ldy, 0, (high - rows) * ldy * sizeof(T));
    }
    static void columns_of(const T* x, I ldx, I rows, I size, T* y) {  // all multiples of 8
        for (I r = 0; r < rows; r += 8)
            for (I i = 0; i < size; i += 8) eight(x + r * ldx + i, ldx, y + i * rows + r, rows);
    }
    // c (rows, E) = A·b as rows of a role; `aside` where a row is no whole vectors.
    template <bool TURNED> void into(I rows, I K, const T* a, I lda, const T* b, I Ep, T* aside, Role at) const {
        T* to = (T*)at.x;
        if (E == Ep) return small<T, TURNED>(rows, Ep, K, a, lda, b, Ep, to, at.next);
        small<T, TURNED>(rows, Ep, K, a, lda, b, Ep, aside, Ep);
        for (I r = 0; r < rows; ++r) std::memcpy(to + r * at.next, aside + r * Ep, E * sizeof(T));
    }

    // Where queries, keys and values are once parts and turns are done.
    struct Packed {
        const T *q, *k;
        I q_roles, k_roles, key, value, keys, Sp;
    };
    Packed packed(const Sublayer& l, const Buffers<T>& w) const {
        if (l.kind == SELF) return {w.q, w.q, 3, 3, 1, 2, t, Sp_self};
        return {w.q, w.k, 1, 2, 0, 1, s, Sp_cross};
    }

    const T* attention(const Sublayer& l, const Buffers<T>& w, const T* u) const {
        const bool self = l.kind == SELF;
        const I roles = self ? 3 : 1;
        product.forward(n, d, roles * d, u, value(l.map1), value(l.bias1), w.q0);
        if (!self) product.forward(m, d, 2 * d, (const T*)c.memory, value(l.memory), value(l.memory_bias), w.k0);
        if (headed(l) || turns(l)) {
            T* stat = w.s_heads;
            of_heads(l, w.q0, w.q, n, roles, 0, QUERY, stat, turns(l));
            stat += 2 * H * n;
            const I rows = self ? n : m;
            of_heads(l, self ? w.q0 : w.k0, self ? w.q : w.k, rows, self ? 3 : 2, self ? 1 : 0, KEY, stat, turns(l));
            of_heads(l, self ? w.q0 : w.k0, self ? w.q : w.k, rows, self ? 3 : 2, self ? 2 : 1, VALUE, stat + 2 * H * rows, false);
        }
        const Packed at = packed(l, w);
        const I S = at.keys, Sp = at.Sp, Ep = padded(E);
        T *Q = head_scratch(), *K = Q + t * Ep, *V = K + Sp * Ep, *KT = V + S * Ep, *O = KT + Ep * Sp;
        const T scale = T(1.0 / std::sqrt(double(E)));
        for (I sentence = 0; sentence < b; ++sentence) {
            const T* mask = c.mask && !l.causal ? (const T*)c.mask + sentence * S : nullptr;
            for (I head = 0; head < H; ++head) {
                T* P = w.p + (sentence * H + head) * t * Sp;
                rows_of(role(at.q, at.q_roles, 0, sentence, head), t, t, scale, Q, Ep);
                rows_of(role(at.k, at.k_roles, at.key, sentence, head), S, Sp, 1, K, Ep);
                rows_of(role(at.k, at.k_roles, at.value, sentence, head), S, S, 1, V, Ep);
                columns_of(K, Ep, Sp, Ep, KT);
                small<T, false>(t, Sp, E, Q, Ep, KT, Sp, P, Sp);
                for (I i = 0; i < t; ++i) masked(P + i * Sp, S, Sp, mask, l.causal ? i + 1 : S);
                if (w.logits) std::memcpy(w.logits + (P - w.p), P, t * Sp * sizeof(T));
                for (I i = 0; i < t; ++i) softmax(P + i * Sp, Sp);
                into<false>(t, S, P, Sp, V, Ep, O, role(w.o, 1, 0, sentence, head));
            }
        }
        const Part<T> last = part(l, LAST);
        if (!last) return w.o;
        for (I r = 0; r < n; ++r) last.forward(d, w.o + r * d, w.last + r * d, w.s_last + 2 * r);
        return w.last;
    }

    static void masked(T* row, I S, I Sp, const T* mask, I seen) {
        const T never = -std::numeric_limits<T>::infinity();
        if (mask)
            for (I i = 0; i < S; ++i) row[i] += mask[i];
        for (I i = seen; i < Sp; ++i) row[i] = never;
    }

    static void softmax(T* row, I Sp) {
        const I step = lanes<T>();
        Vec<T> most = load(row);
        for (I i = step; i < Sp; i += step) {
            const Vec<T> v = load(row + i);
            most = v > most ? v : most;
            most = v != v ? v : most;
        }
        const T top = folded<T>(most, [](auto a, auto b) {
            auto larger = a > b ? a : b;
            return a != a ? a : larger;  // and a NaN in b is what `larger` took
        });
        Vec<T> total = {};
        for (I i = 0; i < Sp; i += step) {
            const Vec<T> v = exponential(load(row + i) - top);
            store(row + i, v);
            total += v;
        }
        const T scale = 1 / folded<T>(total, [](auto a, auto b) { return a + b; });
        for (I i = 0; i < Sp; i += step) store(row + i, load(row + i) * scale);
    }

    void leaving(const Sublayer& l, const Buffers<T>& w, const T* x0, const T* dropped) const {
        const Part<T> end = part(l, END), branch = part(l, BRANCH), out = part(l, OUT);
        const T *omegas = value(l.omega_at), *gammas = value(l.gamma_at);
        const T omega = omegas && !l.omega_vector ? omegas[0] : T(l.omega);
        const T gamma = gammas && !l.gamma_vector ? gammas[0] : T(l.gamma);
        for (I r = 0; r < n; ++r) {
            const T* x = x0 + r * d;
            T *f = w.f0 + r * d, *sum = w.sum + r * d;
            if (end) end.forward(d, f, w.f1 + r * d, w.s_end + 2 * r), f = w.f1 + r * d;
            if (dropped)
#pragma omp simd
                for (I i = 0; i < d; ++i) f[i] *= dropped[r * d + i];
            if (branch) branch.forward(d, f, w.f2 + r * d, w.s_branch + 2 * r), f = w.f2 + r * d;
            T* v = w.tap ? w.tap + r * d : sum;
            if (gammas && l.gamma_vector)
#pragma omp simd
                for (I i = 0; i < d; ++i) v[i] = f[i] * gammas[i];
            else if (gammas || gamma != 1)
#pragma omp simd
                for (I i = 0; i < d; ++i) v[i] = f[i] * gamma;
            else if (v != f)
                std::memcpy(v, f, d * sizeof(T));
            if (w.long_branch) w.long_branch[r] = std::sqrt(dot(v, v));
            if (omegas && l.omega_vector)
#pragma omp simd
                for (I i = 0; i < d; ++i) sum[i] = v[i] + omegas[i] * x[i];
            else
#pragma omp simd
                for (I i = 0; i < d; ++i) sum[i] = v[i] + omega * x[i];
            if (w.long_shortcut) {  // v may be the sum by now
                T square = 0;
                if (omegas && l.omega_vector)
#pragma omp simd reduction(+ : square)
                    for (I i = 0; i < d; ++i) square += omegas[i] * x[i] * (omegas[i] * x[i]);
                else
#pragma omp simd reduction(+ : square)
                    for (I i = 0; i < d; ++i) square += omega * x[i] * (omega * x[i]);
                w.long_shortcut[r] = std::sqrt(square);
            }
            if (w.long_sum) w.long_sum[r] = std::sqrt(dot(sum, sum));
            if (out) out.forward(d, sum, w.y + r * d, w.s_out + 2 * r);
        }
    }

    // ---- backward

    void backward() {
        Arena<T> a{(T*)c.work};
        std::vector<Buffers<T>> all;
        for (I i = 0; i < c.sublayers; ++i) all.push_back(buffers(i, a, nullptr));
        begin_scratch();
        Arena<T> rest{scratch, head_size() + row_size() + Products<T>::SIZE + 16};
        T *df = rest.take(n * d), *du = rest.take(n * d), *one = rest.take(n * d), *two = rest.take(n * d);
        T *dO = rest.take(n * d), *wide = rest.take(n * widest()), *more = rest.take(n * widest() + m * 2 * d);
        const T* dy = (const T*)c.dy;
        for (I i = c.sublayers - 1; i >= 0; --i) {
            const Sublayer& l = c.sublayer[i];
            const Buffers<T>& w = all[i];
            const T* x = i ? all[i - 1].y : (const T*)c.x;
            T* dx = i ? (i % 2 ? one : two) : (T*)c.dx;
            const T* tap = i == c.sublayers - 1 ? (const T*)c.dbranch : nullptr;
            left(l, w, x, dy, tap, c.dropped ? (const T*)c.dropped[i] : nullptr, c.dsums ? (T*)c.dsums[i] : nullptr, dx, df);
            const bool plain = !w.u0 && !w.u1;  // then what G was given is x itself
            T* to = plain ? dx : du;
            const T beta = plain ? 1 : 0;
            if (attends(l)) attention_backward(l, w, entered(w, x), df, wide, more, dO, beta, to);
            else feed_forward_backward(l, w, entered(w, x), df, wide, more, beta, to);
            if (!plain) entered_backward(l, w, x, du, dx);
            dy = dx;
        }
    }

    // From dy to dx (ω of it, so far) and df, of what the branch gave before its bias.
    void left(const Sublayer& l, const Buffers<T>& w, const T* x0, const T* dy0, const T* dtap, const T* dropped, T* dsums, T* dx0, T* df0) const {
        Part<T> end = part(l, END), branch = part(l, BRANCH), out = part(l, OUT);
        T* at = row_scratch();
        for (Part<T>* p : {&end, &branch, &out}) p->first = at, p->second = at + d, at += 2 * d;
        T *bias = at, *omega_sums = at + d, *gamma_sums = at + 2 * d, *t2 = at + 3 * d, *row = at + 4 * d;
        T *d_bias = gradient(l.bias2), *d_omega = gradient(l.omega_at), *d_gamma = gradient(l.gamma_at);
        const T *omegas = value(l.omega_at), *gammas = value(l.gamma_at);
        const T omega = omegas && !l.omega_vector ? omegas[0] : T(l.omega);
        const T gamma = gammas && !l.gamma_vector ? gammas[0] : T(l.gamma);
        double omega_sum = 0, gamma_sum = 0;
        for (I r = 0; r < n; ++r) {
            const T* x = x0 + r * d;
            T *dx = dx0 + r * d, *df = df0 + r * d;
            const T* ds = dy0 + r * d;
            if (out) out.backward(d, w.sum + r * d, ds, row, w.s_out + 2 * r, t2), ds = row;
            if (dsums) std::memcpy(dsums + r * d, ds, d * sizeof(T));
            if (d_omega && l.omega_vector)
                for (I i = 0; i < d; ++i) omega_sums[i] += ds[i] * x[i];
            else if (d_omega)
                omega_sum += dot(ds, x);
            for (I i = 0; i < d; ++i) df[i] = dtap ? ds[i] + dtap[r * d + i] : ds[i];
            if (omegas && l.omega_vector)
#pragma omp simd
                for (I i = 0; i < d; ++i) dx[i] = omegas[i] * ds[i];
            else
#pragma omp simd
                for (I i = 0; i < d; ++i) dx[i] = omega * ds[i];
            if (gammas) {
                const T* f = w.f2 + r * d;
                if (l.gamma_vector)
                    for (I i = 0; i < d; ++i) {
                        gamma_sums[i] += df[i] * f[i];
                        df[i] *= gammas[i];
                    }
                else {
                    gamma_sum += dot(df, f);
                    for (I i = 0; i < d; ++i) df[i] *= gamma;
                }
            } else if (gamma != 1)
#pragma omp simd
                for (I i = 0; i < d; ++i) df[i] *= gamma;
            if (branch) branch.backward(d, w.f1 + r * d, df, df, w.s_branch + 2 * r, t2);
            if (dropped)
                for (I i = 0; i < d; ++i) df[i] *= dropped[r * d + i];
            if (end) end.backward(d, w.f0 + r * d, df, df, w.s_end + 2 * r, t2);
            if (d_bias)
#pragma omp simd
                for (I i = 0; i < d; ++i) bias[i] += df[i];
            if ((r + 1) % BLOCK == 0 || r + 1 == n) {
                end.flush(d), branch.flush(d), out.flush(d);
                if (d_bias) out.add(d_bias, bias, d);
                if (d_omega && l.omega_vector) out.add(d_omega, omega_sums, d);
                if (d_gamma && l.gamma_vector) out.add(d_gamma, gamma_sums, d);
            }
        }
        end.finish(), branch.finish(), out.finish();
        if (d_omega && !l.omega_vector) d_omega[0] += T(omega_sum);
        if (d_gamma && !l.gamma_vector) d_gamma[0] += T(gamma_sum);
    }

    T dot(const T* x, const T* y) const {
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (I i = 0; i < d; ++i) sum += x[i] * y[i];
        return sum;
    }

    void entered_backward(const Sublayer& l, const Buffers<T>& w, const T* x, T* du, T* dx) const {
        Part<T> in = part(l, IN), first = part(l, FIRST);
        T* sums = row_scratch();
        in.first = sums, in.second = sums + d, first.first = sums + 2 * d, first.second = sums + 3 * d;
        for (I r = 0; r < n; ++r) {
            T* g = du + r * d;
            if (first) first.backward(d, (w.u0 ? w.u0 : x) + r * d, g, g, w.s_first + 2 * r, sums + 4 * d);
            if (l.kappa != 1)
                for (I i = 0; i < d; ++i) g[i] *= T(l.kappa);
            if (in) in.backward(d, x + r * d, g, g, w.s_in + 2 * r, sums + 4 * d);
#pragma omp simd
            for (I i = 0; i < d; ++i) dx[r * d + i] += g[i];
            if ((r + 1) % BLOCK == 0 || r + 1 == n) in.flush(d), first.flush(d);
        }
        in.finish(), first.finish();
    }

    void feed_forward_backward(const Sublayer& l, const Buffers<T>& w, const T* u, const T* df, T* wide, T* dh, T beta, T* du) const {
        const I f = l.inner, rows = inner_rows(l);
        Part<T> mid = part(l, MID), last = part(l, LAST);
        T* sums = row_scratch();
        mid.first = sums, mid.second = sums + f, last.first = sums + 2 * f, last.second = sums + 3 * f;
        T *t2 = sums + 4 * f, *sigma = sums + 5 * f, *bias = sums + 6 * f, *d_bias = gradient(l.bias1);
        product.weight(n, f, d, df, w.last ? w.last : w.h, gradient(l.map2));
        T* dg = l.kind == RELU ? wide : dh;
        product.input(n, f, d, df, value(l.map2), 0, dg);
        for (I r = 0; r < n; ++r) {
            T *g = dg + r * f, *d0 = wide + r * rows;
            const T* h = w.h + r * f;
            if (last) last.backward(f, h, g, g, w.s_last + 2 * r, t2);
            if (l.kind == RELU) {
                for (I i = 0; i < f; ++i) d0[i] = h[i] <= 0 ? T(0) : g[i];  // as torch's threshold: the gradient passes a NaN
            } else {
                const T *x = w.h0 + r * rows, *gate = mid ? w.h1 + r * f : x, *up = x + f;
                logistic(f, gate, sigma);
#pragma omp simd
                for (I i = 0; i < f; ++i) {
                    d0[f + i] = g[i] * gate[i] * sigma[i];
                    d0[i] = g[i] * up[i] * sigma[i] * (1 + gate[i] * (1 - sigma[i]));
                }
            }
            if (mid) mid.backward(f, w.h0 + r * rows, d0, d0, w.s_mid + 2 * r, t2);
            if (d_bias)
#pragma omp simd
                for (I i = 0; i < rows; ++i) bias[i] += d0[i];
            if ((r + 1) % BLOCK == 0 || r + 1 == n) {
                mid.flush(f), last.flush(f);
                if (d_bias) mid.add(d_bias, bias, rows);
            }
        }
        mid.finish(), last.finish();
        product.weight(n, d, rows, wide, u, gradient(l.map1));
        product.input(n, d, rows, wide, value(l.map1), beta, du);
    }

    void attention_backward(const Sublayer& l, const Buffers<T>& w, const T* u, const T* df, T* dq, T* more, T* dO, T beta, T* du) const {
        const bool self = l.kind == SELF;
        const I roles = self ? 3 : 1;
        Part<T> last = part(l, LAST);
        T* sums = row_scratch();
        last.first = sums, last.second = sums + d;
        product.weight(n, d, d, df, w.last ? w.last : w.o, gradient(l.map2));
        product.input(n, d, d, df, value(l.map2), 0, dO);
        if (last)
            for (I r = 0; r < n; ++r) {
                last.backward(d, w.o + r * d, dO + r * d, dO + r * d, w.s_last + 2 * r, sums + 2 * d);
                if ((r + 1) % BLOCK == 0 || r + 1 == n) last.flush(d);
            }
        last.finish();

        const Packed at = packed(l, w);
        const I S = at.keys, Sp = at.Sp, Ep = padded(E);
        T* dk = self ? dq : more;  // packed as the keys are
        T *Q = head_scratch(), *K = Q + t * Ep, *V = K + S * Ep, *VT = V + Sp * Ep, *G = VT + Ep * Sp, *D = G + t * Ep;
        T* R = D + t * Sp;
        const T scale = T(1.0 / std::sqrt(double(E)));
        for (I sentence = 0; sentence < b; ++sentence)
            for (I head = 0; head < H; ++head) {
                const T* P = w.p + (sentence * H + head) * t * Sp;
                rows_of(role(at.q, at.q_roles, 0, sentence, head), t, t, scale, Q, Ep);
                rows_of(role(at.k, at.k_roles, at.key, sentence, head), S, S, scale, K, Ep);
                rows_of(role(at.k, at.k_roles, at.value, sentence, head), S, Sp, 1, V, Ep);
                rows_of(role(dO, 1, 0, sentence, head), t, t, 1, G, Ep);
                columns_of(V, Ep, Sp, Ep, VT);
                small<T, false>(t, Sp, E, G, Ep, VT, Sp, D, Sp);  // of the probabilities
                for (I i = 0; i < t; ++i) softmax_backward(P + i * Sp, D + i * Sp, Sp);
                into<false>(t, S, D, Sp, K, Ep, R, role(dq, roles, 0, sentence, head));
                into<true>(S, t, D, Sp, Q, Ep, R, role(dk, at.k_roles, at.key, sentence, head));
                into<true>(S, t, P, Sp, G, Ep, R, role(dk, at.k_roles, at.value, sentence, head));
            }
        if (headed(l) || turns(l)) {
            const T* stat = w.s_heads;
            of_heads_backward(l, w.q0, dq, n, roles, 0, QUERY, stat, turns(l));
            stat += 2 * H * n;
            const I rows = self ? n : m;
            of_heads_backward(l, self ? w.q0 : w.k0, dk, rows, at.k_roles, at.key, KEY, stat, turns(l));
            of_heads_backward(l, self ? w.q0 : w.k0, dk, rows, at.k_roles, at.value, VALUE, stat + 2 * H * rows, false);
        }
        summed(dq, n, roles * d, gradient(l.bias1));
        product.weight(n, d, roles * d, dq, u, gradient(l.map1));
        product.input(n, d, roles * d, dq, value(l.map1), beta, du);
        if (!self) {
            summed(dk, m, 2 * d, gradient(l.memory_bias));
            product.weight(m, d, 2 * d, dk, (const T*)c.memory, gradient(l.memory));
            if (c.dmemory) product.input(m, d, 2 * d, dk, value(l.memory), 1, (T*)c.dmemory);
        }
    }

    static void softmax_backward(const T* p, T* d, I Sp) {  // p·(d − Σ p·d); where p is 0, d is whatever
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (I i = 0; i < Sp; ++i) sum += p[i] * d[i];
#pragma omp simd
        for (I i = 0; i < Sp; ++i) d[i] = p[i] * (d[i] - sum);
    }

    void summed(const T* x, I rows, I size, T* to) const {
        if (!to) return;
        T* sums = row_scratch();
        for (I r = 0; r < rows; ++r) {
#pragma omp simd
            for (I i = 0; i < size; ++i) sums[i] += x[r * size + i];
            if ((r + 1) % BLOCK == 0 || r + 1 == rows)
                for (I i = 0; i < size; ++i) to[i] += sums[i], sums[i] = 0;
        }
    }
};

template <class T> struct Heading {
    Head& c;
    const I n, d, V;
    Products<T> product;
    T *most;   // of a row: the log of the sum of all exponentials
    T *block;  // (BLOCK, V)

    explicit Heading(Head& head) : c(head), n(c.rows), d(c.width), V(c.classes) {
        most = (T*)c.work;
        product.pack = most + padded(n);
        block = product.pack + Products<T>::SIZE;
    }
    static I size(const Head& c) { return padded(c.rows) + Products<T>::SIZE + BLOCK * c.classes + PAD; }

    void forward() {
        T* logits = (T*)c.logits;
        product.forward(n, d, V, (const T*)c.x, (const T*)c.weight, nullptr, logits);
        double loss = 0, right = 0, count = 0;
        for (I r = 0; r < n; ++r) {
            const T* x = logits + r * V;
            if (c.target[r] == c.ignored) continue;
            T top = x[0];
            double all_sum = 0;
            const I step = lanes<T>();
            Vec<T> high = all(x[0]), sums = {}, total = {};
            I i = 0;
            for (; i + step <= V; i += step) {
                const Vec<T> v = load(x + i);
                high = v > high ? v : high;
                sums += v;
            }
            for (I j = 0; j < step; ++j) top = high[j] > top ? high[j] : top, all_sum += sums[j];
            for (; i < V; ++i) top = x[i] > top ? x[i] : top, all_sum += x[i];
            double rest = 0;
            for (i = 0; i + step <= V; i += step) total += exponential(load(x + i) - top);
            for (; i < V; ++i) rest += std::exp(x[i] - top);
            for (I j = 0; j < step; ++j) rest += total[j];
            const double log_sum = top + std::log(rest);
            most[r] = T(log_sum);
            right += log_sum - x[c.target[r]];
            loss += (1 - c.smoothing) * (log_sum - x[c.target[r]]) + c.smoothing * (log_sum - all_sum / V);
            count += 1;
        }
        c.loss = loss / count, c.right = right / count, c.count = count;
    }

    void backward() {
        const T *logits = (const T*)c.logits, *x = (const T*)c.x;
        const T share = T(c.dloss / c.count), less = T(c.dloss / c.count * c.smoothing / V);
        const T right = T(c.dloss / c.count * (1 - c.smoothing));
        for (I begin = 0; begin < n; begin += BLOCK) {
            const I high = n - begin < BLOCK ? n - begin : BLOCK;
            for (I r = 0; r < high; ++r) {
                T* g = block + r * V;
                const I at = begin + r;
                if (c.target[at] == c.ignored) {
                    std::memset(g, 0, V * sizeof(T));
                    continue;
                }
                const T log_sum = most[at];
                each(V, logits + at * V, g, [=](Vec<T> v) { return exponential(v - log_sum) * share - less; });
                g[c.target[at]] -= right;
            }
            product.input(high, d, V, block, (const T*)c.weight, 0, (T*)c.dx + begin * d);
            product.weight(high, d, V, block, x + begin * d, (T*)c.dweight);
        }
    }
};

// ---- wirings

// A token's n × n logits → exp of them, rows and columns in turn divided by their sums; as many tokens at once as a
// vector has entries. n ≤ MOST, rounds ≤ ROUNDS_MOST.
const I MOST = 4, ROUNDS_MOST = 32;
template <class T> struct Sinkhorn {
    typedef Vec<T> V;
    const I n, rounds;

    static V least() { return all(T(1e-6)); }  // what a sum counts as at least
    // Entry e of matrix j of a block of matrices, those beyond `high` as the first.
    void gather(I high, const T* from, V* to) const {
        for (I e = 0; e < n * n; ++e)
            for (I j = 0; j < lanes<T>(); ++j) to[e][j] = from[(j < high ? j : 0) * n * n + e];
    }
    void scatter(I high, const V* from, T* to) const {
        for (I j = 0; j < high; ++j)
            for (I e = 0; e < n * n; ++e) to[j * n * n + e] = from[e][j];
    }
    // Every step's matrices, from exp on, and the sums that led to the next.
    void steps(I high, const T* logits, V* x, V* sums) const {
        gather(high, logits, x);
        for (I i = 0; i < n; ++i) {
            V top = x[i * n];
            for (I j = 1; j < n; ++j) top = x[i * n + j] > top ? x[i * n + j] : top;
            for (I j = 0; j < n; ++j) x[i * n + j] = exponential(x[i * n + j] - top);
        }
        for (I step = 0; step < 2 * rounds; ++step, x += n * n, sums += n) {
            const bool rows = step % 2 == 0;
            for (I i = 0; i < n; ++i) sums[i] = V{};
            for (I i = 0; i < n; ++i)
                for (I j = 0; j < n; ++j) sums[rows ? i : j] += x[i * n + j];
            for (I i = 0; i < n; ++i) sums[i] = sums[i] > least() ? sums[i] : least();
            for (I i = 0; i < n; ++i)
                for (I j = 0; j < n; ++j) x[n * n + i * n + j] = x[i * n + j] / sums[rows ? i : j];
        }
    }
    void forward(I count, const T* logits, T* out) const {
        V x[(2 * ROUNDS_MOST + 1) * MOST * MOST], sums[2 * ROUNDS_MOST * MOST];
        for (I c = 0; c < count; c += lanes<T>()) {
            const I high = count - c < lanes<T>() ? count - c : lanes<T>();
            steps(high, logits + c * n * n, x, sums);
            scatter(high, x + 2 * rounds * n * n, out + c * n * n);
        }
    }
    void backward(I count, const T* logits, const T* dout, T* dlogits) const {
        V x[(2 * ROUNDS_MOST + 1) * MOST * MOST], sums[2 * ROUNDS_MOST * MOST], d[MOST * MOST];
        for (I c = 0; c < count; c += lanes<T>()) {
            const I high = count - c < lanes<T>() ? count - c : lanes<T>();
            steps(high, logits + c * n * n, x, sums);
            gather(high, dout + c * n * n, d);
            for (I step = 2 * rounds; step-- > 0;) {  // y = x/s: dx = (dy − Σ dy·y)/s, along what s sums
                const V *y = x + (step + 1) * n * n, *s = sums + step * n;
                const bool rows = step % 2 == 0;
                V dots[MOST] = {};
                for (I i = 0; i < n; ++i)
                    for (I j = 0; j < n; ++j) dots[rows ? i : j] += d[i * n + j] * y[i * n + j];
                for (I i = 0; i < n; ++i) dots[i] = s[i] > least() ? dots[i] : V{};  // a constant where it was too small
                for (I i = 0; i < n; ++i)
                    for (I j = 0; j < n; ++j) d[i * n + j] = (d[i * n + j] - dots[rows ? i : j]) / s[rows ? i : j];
            }
            for (I e = 0; e < n * n; ++e) d[e] *= x[e];
            scatter(high, d, dlogits + c * n * n);
        }
    }
};

// out = Σ_i a_i·v_i, a = softmax_i(q·v_i/√(mean v_i² + ε)), for every row of `count` arrays (rows, d). Rows are taken in
// blocks, so that what is read twice still lies near.
template <class T> struct Depth {
    const I count, rows, d;
    const double epsilon;
    const T* query;
    void* const* values;
    T* weight;   // (count, rows): a
    T* inverse;  // (count, rows): 1/√(mean v² + ε)
    static const I NEAR = 16;

    static T along(I d, const T* a, const T* b) {
        const I step = lanes<T>();
        Vec<T> dots = {};
        I j = 0;
        for (; j + step <= d; j += step) dots += load(a + j) * load(b + j);
        T dot = folded<T>(dots, [](auto x, auto y) { return x + y; });
        for (; j < d; ++j) dot += a[j] * b[j];
        return dot;
    }
    void forward(T* out) const {
        for (I begin = 0; begin < rows; begin += NEAR) {
            const I end = begin + NEAR < rows ? begin + NEAR : rows;
            T top[NEAR], total[NEAR] = {};
            for (I i = 0; i < count; ++i)
                for (I r = begin; r < end; ++r) {
                    const T* v = (const T*)values[i] + r * d;
                    const T scale = T(1 / std::sqrt(along(d, v, v) / d + epsilon)), score = along(d, v, query) * scale;
                    inverse[i * rows + r] = scale, weight[i * rows + r] = score;
                    top[r - begin] = i == 0 || score > top[r - begin] ? score : top[r - begin];
                }
            for (I i = 0; i < count; ++i)
                for (I r = begin; r < end; ++r)
                    total[r - begin] += weight[i * rows + r] = std::exp(weight[i * rows + r] - top[r - begin]);
            std::memset(out + begin * d, 0, (end - begin) * d * sizeof(T));
            for (I i = 0; i < count; ++i)
                for (I r = begin; r < end; ++r) {
                    const T a = weight[i * rows + r] /= total[r - begin];
                    const T* __restrict v = (const T*)values[i] + r * d;
                    T* __restrict y = out + r * d;
                    for (I j = 0; j < d; ++j) y[j] += a * v[j];
                }
        }
    }
    // dv_i += a_i·dy + c_i·(u_i·q − (q·v_i)·u_i³·v_i/d) and dq += Σ c_i·u_i·v_i, with u = `inverse` and
    // c_i = a_i·(dy·v_i − Σ_k a_k·dy·v_k). `more`: (count, NEAR), (d) and (d)
    void backward(const T* dout, void* const* dvalues, T* dquery, T* more) const {
        T *dots = more, *block = more + count * NEAR, *part = block + d;
        for (I begin = 0; begin < rows; begin += NEAR) {
            const I end = begin + NEAR < rows ? begin + NEAR : rows;
            T mean[NEAR] = {};
            for (I i = 0; i < count; ++i)
                for (I r = begin; r < end; ++r) {
                    const T dot = along(d, (const T*)values[i] + r * d, dout + r * d);
                    dots[i * NEAR + r - begin] = dot;
                    mean[r - begin] += weight[i * rows + r] * dot;
                }
            std::memset(block, 0, d * sizeof(T));
            for (I i = 0; i < count; ++i) {
                std::memset(part, 0, d * sizeof(T));
                for (I r = begin; r < end; ++r) {
                    const T a = weight[i * rows + r], u = inverse[i * rows + r];
                    const T c = a * (dots[i * NEAR + r - begin] - mean[r - begin]);
                    const T* __restrict v = (const T*)values[i] + r * d;
                    const T* __restrict dy = dout + r * d;
                    T* __restrict dv = (T*)dvalues[i] + r * d;
                    T* __restrict dq = part;
                    const T back = c * along(d, v, query) * u * u * u / T(d), forth = c * u;
                    for (I j = 0; j < d; ++j) {
                        dv[j] += a * dy[j] + forth * query[j] - back * v[j];
                        dq[j] += forth * v[j];
                    }
                }
                for (I j = 0; j < d; ++j) block[j] += part[j];
            }
            for (I j = 0; j < d; ++j) dquery[j] += block[j];
        }
    }
};

}  // namespace

extern "C" {

// What `Call` and `Sublayer` are long, so that a library of another version is not called.
I stabkit_layout() { return (I(sizeof(Call)) * 65536 + I(sizeof(Sublayer))) * 65536 + I(sizeof(Head)); }

// Elements that `work` is to hold.
I stabkit_size(const Call* call) { return call->doubles ? Stack<double>(*call).size() : Stack<float>(*call).size(); }

void stabkit_forward(const Call* call) {
    if (call->doubles) Stack<double>(*call).forward();
    else if (call->width == 64 && call->heads == 2) Stack<float, 64, 32>(*call).forward();
    else Stack<float>(*call).forward();
}

// After a forward with KEEP, with the same `work`.
void stabkit_backward(const Call* call) {
    if (call->doubles) Stack<double>(*call).backward();
    else if (call->width == 64 && call->heads == 2) Stack<float, 64, 32>(*call).backward();
    else Stack<float>(*call).backward();
}

// c (m, n) = beta·c + op(a)·op(b), for tests and benchmarks; `pack` has `stabkit_pack()` elements.
I stabkit_pack() { return Products<float>::SIZE; }
void stabkit_product(I ta, I tb, I m, I n, I k, const float* a, const float* b, float beta, float* c, float* pack) {
    const Products<float> product{pack};
    if (ta) tb ? product.multiply<true, true>(m, n, k, a, b, beta, c) : product.multiply<true, false>(m, n, k, a, b, beta, c);
    else tb ? product.multiply<false, true>(m, n, k, a, b, beta, c) : product.multiply<false, false>(m, n, k, a, b, beta, c);
}

I stabkit_head_size(const Head* head) { return head->doubles ? Heading<double>::size(*head) : Heading<float>::size(*head); }

void stabkit_head_forward(Head* head) {
    if (head->doubles) Heading<double>(*head).forward();
    else Heading<float>(*head).forward();
}

// After a forward, with the same `logits` and `work`.
void stabkit_head_backward(Head* head) {
    if (head->doubles) Heading<double>(*head).backward();
    else Heading<float>(*head).backward();
}

// `Sinkhorn` of `count` tokens; the gradient is written.
void stabkit_sinkhorn(I doubles, I count, I n, I rounds, const void* logits, void* out) {
    if (doubles) Sinkhorn<double>{n, rounds}.forward(count, (const double*)logits, (double*)out);
    else Sinkhorn<float>{n, rounds}.forward(count, (const float*)logits, (float*)out);
}
void stabkit_sinkhorn_backward(
    I doubles, I count, I n, I rounds, const void* logits, const void* dout, void* dlogits
) {
    if (doubles)
        Sinkhorn<double>{n, rounds}.backward(count, (const double*)logits, (const double*)dout, (double*)dlogits);
    else Sinkhorn<float>{n, rounds}.backward(count, (const float*)logits, (const float*)dout, (float*)dlogits);
}

// `Depth`; `work` (2, count, rows) is kept for the backward, which adds to the gradients; `more` holds (count, 16) and
// twice d elements.
void stabkit_depth(
    I doubles, I count, I rows, I width, double epsilon, const void* query, void* const* values, void* work, void* out
) {
    const I size = count * rows;
    if (doubles)
        Depth<double>{count, rows, width, epsilon, (const double*)query, values, (double*)work, (double*)work + size}
            .forward((double*)out);
    else
        Depth<float>{count, rows, width, epsilon, (const float*)query, values, (float*)work, (float*)work + size}
            .forward((float*)out);
}
void stabkit_depth_backward(
    I doubles, I count, I rows, I width, double epsilon, const void* query, void* const* values, void* work,
    const void* dout, void* const* dvalues, void* dquery, void* more
) {
    const I size = count * rows;
    if (doubles)
        Depth<double>{count, rows, width, epsilon, (const double*)query, values, (double*)work, (double*)work + size}
            .backward((const double*)dout, dvalues, (double*)dquery, (double*)more);
    else
        Depth<float>{count, rows, width, epsilon, (const float*)query, values, (float*)work, (float*)work + size}
            .backward((const float*)dout, dvalues, (float*)dquery, (float*)more);
}
}
