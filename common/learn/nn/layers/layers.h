#ifndef COMMON_LEARN_NN_LAYERS_LAYERS_H_
#define COMMON_LEARN_NN_LAYERS_LAYERS_H_

#include "absl/strings/string_view.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/attention/attention.h"
#include "common/learn/nn/attention/multi_head_attention.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/image/center_crop.h"
#include "common/learn/nn/image/composed_augmentation.h"
#include "common/learn/nn/image/elastic_transform.h"
#include "common/learn/nn/image/mixed_images.h"
#include "common/learn/nn/image/random_color.h"
#include "common/learn/nn/image/random_image.h"
#include "common/learn/nn/image/random_position.h"
#include "common/learn/nn/image/rescaling.h"
#include "common/learn/nn/image/resizing.h"
#include "common/learn/nn/image/tile_equalization.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/activation_layer.h"
#include "common/learn/nn/layers/activity_regularization.h"
#include "common/learn/nn/layers/adaptive_pooling.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/convolution.h"
#include "common/learn/nn/layers/convolution_transpose.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/depthwise_convolution.h"
#include "common/learn/nn/layers/dot.h"
#include "common/learn/nn/layers/einsum_dense.h"
#include "common/learn/nn/layers/elu.h"
#include "common/learn/nn/layers/embedding.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/layers/group_normalization.h"
#include "common/learn/nn/layers/layer_normalization.h"
#include "common/learn/nn/layers/leaky_relu.h"
#include "common/learn/nn/layers/margins.h"
#include "common/learn/nn/layers/masking.h"
#include "common/learn/nn/layers/merge.h"
#include "common/learn/nn/layers/noise.h"
#include "common/learn/nn/layers/normalization.h"
#include "common/learn/nn/layers/pooling.h"
#include "common/learn/nn/layers/relu.h"
#include "common/learn/nn/layers/reshape.h"
#include "common/learn/nn/layers/reversible_embedding.h"
#include "common/learn/nn/layers/rms_normalization.h"
#include "common/learn/nn/layers/softmax.h"
#include "common/learn/nn/layers/spectral_normalization.h"
#include "common/learn/nn/layers/time_distributed.h"
#include "common/learn/nn/layers/up_sampling.h"
#include "common/learn/nn/preprocessing/category_encoding.h"
#include "common/learn/nn/preprocessing/discretization.h"
#include "common/learn/nn/preprocessing/hashed_crossing.h"
#include "common/learn/nn/preprocessing/hashing.h"
#include "common/learn/nn/preprocessing/lookup.h"
#include "common/learn/nn/preprocessing/text_vectorization.h"
#include "common/learn/nn/recurrent/bidirectional.h"
#include "common/learn/nn/recurrent/conv_lstm.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "common/learn/nn/recurrent/rnn.h"

// The headers of all layers, and a table of their kinds for readers of job
// files and Keras' config.
namespace muster {

// What Keras' files record of a call that does not say `training`: the default
// of the class's call(), if it has one.
enum class TrainingDefault { kNone, kOff, kOn };

// How the calls of a kind of layer are written in files of Keras.
struct KerasCalls {
  TrainingDefault training = TrainingDefault::kNone;
  // Inputs after the first are initial states, an argument of their own.
  bool takes_initial_states = false;
};
inline constexpr KerasCalls kOffByDefault = {.training = TrainingDefault::kOff};
inline constexpr KerasCalls kOnByDefault = {.training = TrainingDefault::kOn};
inline constexpr KerasCalls kRecurrentCalls = {
    .training = TrainingDefault::kOff, .takes_initial_states = true};

// A kind of layer.
struct LayerKind {
  // The case of JobLayer.kind.
  absl::string_view name;
  // Creates a layer with Keras' defaults. Hyperparameters without a default are
  // 0 or empty; VisitConfig() then sets the hyperparameters.
  LayerPtr (*make)();
  KerasCalls keras_calls = {};
};

inline constexpr LayerKind kLayerKinds[] = {
    {"activation", [] { return Activate(Activation::kLinear); }},
    {"activity_regularization", [] { return ActivityRegularization(); }},
    {"adaptive_average_pooling1d", [] { return AdaptiveAveragePooling1D(0); }},
    {"adaptive_average_pooling2d", [] { return AdaptiveAveragePooling2D(0); }},
    {"adaptive_average_pooling3d", [] { return AdaptiveAveragePooling3D(0); }},
    {"adaptive_max_pooling1d", [] { return AdaptiveMaxPooling1D(0); }},
    {"adaptive_max_pooling2d", [] { return AdaptiveMaxPooling2D(0); }},
    {"adaptive_max_pooling3d", [] { return AdaptiveMaxPooling3D(0); }},
    {"add", [] { return Add(); }},
    {"additive_attention", [] { return AdditiveAttention(); }, kOffByDefault},
    {"alpha_dropout", [] { return AlphaDropout(0); }, kOffByDefault},
    {"attention", [] { return Attention(); }, kOffByDefault},
    {"aug_mix", [] { return AugMix(); }, kOnByDefault},
    {"auto_contrast", [] { return AutoContrast(); }},
    {"average", [] { return Average(); }},
    {"average_pooling1d", [] { return AveragePooling1D(); }},
    {"average_pooling2d", [] { return AveragePooling2D(); }},
    {"average_pooling3d", [] { return AveragePooling3D(); }},
    {"batch_normalization", [] { return BatchNormalization(); }},
    {"bidirectional",
     [] { return Bidirectional(nullptr); },
     {.takes_initial_states = true}},
    {"category_encoding", [] { return CategoryEncoding(0); }},
    {"center_crop", [] { return CenterCrop(0, 0); }},
    {"concatenate", [] { return Concatenate(); }},
    {"contrast_limited_adaptive_histogram_equalization",
     [] { return ContrastLimitedAdaptiveHistogramEqualization(); },
     kOnByDefault},
    {"conv1d", [] { return Conv1D(0, 0); }},
    {"conv1d_transpose", [] { return Conv1DTranspose(0, 0); }},
    {"conv2d", [] { return Conv2D(0, 0); }},
    {"conv2d_transpose", [] { return Conv2DTranspose(0, 0); }},
    {"conv3d", [] { return Conv3D(0, 0); }},
    {"conv3d_transpose", [] { return Conv3DTranspose(0, 0); }},
    {"conv_lstm1d", [] { return ConvLSTM1D(0, 0); }, kRecurrentCalls},
    {"conv_lstm2d", [] { return ConvLSTM2D(0, 0); }, kRecurrentCalls},
    {"conv_lstm3d", [] { return ConvLSTM3D(0, 0); }, kRecurrentCalls},
    {"cropping1d", [] { return Cropping1D(); }},
    {"cropping2d", [] { return Cropping2D(); }},
    {"cropping3d", [] { return Cropping3D(); }},
    {"cut_mix", [] { return CutMix(); }, kOnByDefault},
    {"dense", [] { return Dense(0); }},
    {"depthwise_conv1d", [] { return DepthwiseConv1D(0); }},
    {"depthwise_conv2d", [] { return DepthwiseConv2D(0); }},
    {"discretization", [] { return Discretization(); }},
    {"dot", [] { return Dot({}); }},
    {"dropout", [] { return Dropout(0); }, kOffByDefault},
    {"einsum_dense", [] { return EinsumDense("", {}); }},
    {"elu", [] { return ELU(); }},
    {"embedding", [] { return Embedding(0, 0); }},
    {"equalization", [] { return Equalization(); }},
    {"flatten", [] { return Flatten(); }},
    {"gaussian_dropout", [] { return GaussianDropout(0); }, kOffByDefault},
    {"gaussian_noise", [] { return GaussianNoise(0); }, kOffByDefault},
    {"global_average_pooling1d", [] { return GlobalAveragePooling1D(); }},
    {"global_average_pooling2d", [] { return GlobalAveragePooling2D(); }},
    {"global_average_pooling3d", [] { return GlobalAveragePooling3D(); }},
    {"global_max_pooling1d", [] { return GlobalMaxPooling1D(); }},
    {"global_max_pooling2d", [] { return GlobalMaxPooling2D(); }},
    {"global_max_pooling3d", [] { return GlobalMaxPooling3D(); }},
    {"group_normalization", [] { return GroupNormalization(); }},
    {"group_query_attention", [] { return GroupQueryAttention(0, 0, 0); }},
    {"gru", [] { return GRU(0); }, kRecurrentCalls},
    {"gru_cell", [] { return GRUCell(0); }},
    {"hashed_crossing", [] { return HashedCrossing(0); }},
    {"hashing", [] { return Hashing(0); }},
    {"identity", [] { return Identity(); }},
    {"integer_lookup", [] { return IntegerLookup(); }},
    {"layer_normalization", [] { return LayerNormalization(); }},
    {"leaky_relu", [] { return LeakyReLU(); }},
    {"lstm", [] { return LSTM(0); }, kRecurrentCalls},
    {"lstm_cell", [] { return LSTMCell(0); }},
    {"masking", [] { return Masking(); }},
    {"max_pooling1d", [] { return MaxPooling1D(); }},
    {"max_pooling2d", [] { return MaxPooling2D(); }},
    {"max_pooling3d", [] { return MaxPooling3D(); }},
    {"maximum", [] { return Maximum(); }},
    {"minimum", [] { return Minimum(); }},
    {"mix_up", [] { return MixUp(); }, kOnByDefault},
    {"multi_head_attention", [] { return MultiHeadAttention(0, 0); }},
    {"multiply", [] { return Multiply(); }},
    {"normalization", [] { return Normalization(); }},
    {"permute", [] { return Permute({}); }},
    {"prelu", [] { return PReLU(); }},
    {"rand_augment", [] { return RandAugment(); }, kOnByDefault},
    {"random_brightness", [] { return RandomBrightness(0); }, kOnByDefault},
    {"random_color_degeneration", [] { return RandomColorDegeneration(0); },
     kOnByDefault},
    {"random_color_jitter", [] { return RandomColorJitter(); }, kOnByDefault},
    {"random_contrast", [] { return RandomContrast(0); }, kOnByDefault},
    {"random_crop", [] { return RandomCrop(0, 0); }, kOnByDefault},
    {"random_elastic_transform", [] { return RandomElasticTransform(); },
     kOnByDefault},
    {"random_erasing", [] { return RandomErasing(); }, kOnByDefault},
    {"random_flip", [] { return RandomFlip(); }, kOnByDefault},
    {"random_gaussian_blur", [] { return RandomGaussianBlur(); }, kOnByDefault},
    {"random_grayscale", [] { return RandomGrayscale(); }, kOnByDefault},
    {"random_hue", [] { return RandomHue(0); }, kOnByDefault},
    {"random_invert", [] { return RandomInvert(); }, kOnByDefault},
    {"random_perspective", [] { return RandomPerspective(); }, kOnByDefault},
    {"random_posterization", [] { return RandomPosterization(0); },
     kOnByDefault},
    {"random_rotation", [] { return RandomRotation(0); }, kOnByDefault},
    {"random_saturation", [] { return RandomSaturation(0); }, kOnByDefault},
    {"random_sharpness", [] { return RandomSharpness(0); }, kOnByDefault},
    {"random_shear", [] { return RandomShear(); }, kOnByDefault},
    {"random_translation", [] { return RandomTranslation(0, 0); },
     kOnByDefault},
    {"random_zoom", [] { return RandomZoom(0); }, kOnByDefault},
    {"relu", [] { return ReLU(); }},
    {"repeat_vector", [] { return RepeatVector(0); }},
    {"rescaling", [] { return Rescaling(ChannelNumbers({})); }},
    {"reshape", [] { return Reshape({}); }},
    {"resizing", [] { return Resizing(0, 0); }},
    {"reversible_embedding", [] { return ReversibleEmbedding(0, 0); }},
    {"rms_normalization", [] { return RMSNormalization(); }},
    {"rnn", [] { return RNN(nullptr); }, kRecurrentCalls},
    {"separable_conv1d", [] { return SeparableConv1D(0, 0); }},
    {"separable_conv2d", [] { return SeparableConv2D(0, 0); }},
    {"simple_rnn", [] { return SimpleRNN(0); }, kRecurrentCalls},
    {"simple_rnn_cell", [] { return SimpleRNNCell(0); }},
    {"softmax", [] { return Softmax(); }},
    {"solarization", [] { return Solarization(); }, kOnByDefault},
    {"spatial_dropout1d", [] { return SpatialDropout1D(0); }, kOffByDefault},
    {"spatial_dropout2d", [] { return SpatialDropout2D(0); }, kOffByDefault},
    {"spatial_dropout3d", [] { return SpatialDropout3D(0); }, kOffByDefault},
    {"spectral_normalization", [] { return SpectralNormalization(nullptr); },
     kOffByDefault},
    {"stacked_rnn_cells", [] { return StackedRNNCells({}); }},
    {"string_lookup", [] { return StringLookup(); }},
    {"subtract", [] { return Subtract(); }},
    {"text_vectorization", [] { return TextVectorization(); }},
    {"time_distributed", [] { return TimeDistributed(nullptr); }},
    {"unit_normalization", [] { return UnitNormalization(); }},
    {"up_sampling1d", [] { return UpSampling1D(); }},
    {"up_sampling2d", [] { return UpSampling2D(); }},
    {"up_sampling3d", [] { return UpSampling3D(); }},
    {"zero_padding1d", [] { return ZeroPadding1D(); }},
    {"zero_padding2d", [] { return ZeroPadding2D(); }},
    {"zero_padding3d", [] { return ZeroPadding3D(); }},
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_LAYERS_H_
