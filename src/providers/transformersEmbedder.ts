import { checkOptions, type OptionChecks } from '../domain/checkOptions.ts'
import { anyFunction, anyText, MemoryError, nonEmptyText, oneOf, share, trueOrFalse } from '../domain/error.ts'
import type { Embedder } from '../domain/ports.ts'

/** Output of the encoder: the vectors of all texts in a row, and the shape `[texts, dimensions]`. */
type Tensor = { readonly data: ArrayLike<number>; readonly dims: readonly number[] }

type Encoder = (
  texts: string[],
  options: { readonly pooling: 'mean' | 'cls'; readonly normalize: boolean },
) => Promise<Tensor>

/** The part of `@huggingface/transformers` that is used. */
export type TransformersModule = {
  readonly env: { localModelPath?: string }
  readonly pipeline: (
    task: 'feature-extraction',
    model: string,
    options: { readonly local_files_only: boolean; readonly dtype?: string },
  ) => Promise<Encoder>
}

/** Options of `transformersEmbedder`. */
export type TransformersOptions = {
  /** Name of the model, such as `Xenova/all-MiniLM-L6-v2`: a folder with ONNX weights below `localModelPath`. */
  readonly model: string
  /** Folder of the models. Default: that of the package. Applies to all uses of the package in this process. */
  readonly localModelPath?: string | undefined
  /** Downloads missing weights from the Hugging Face Hub. Default: false. */
  readonly allowDownload?: boolean | undefined
  /** Combines the vectors of tokens; the model's card names the right one. Default: `mean`. */
  readonly pooling?: 'mean' | 'cls' | undefined
  /** Precision of the weights, such as `q8`. Default: that of the package. */
  readonly dtype?: string | undefined
  /** Share of the embedder in rankings, from 0 to 1. Default: 0.2. */
  readonly weight?: number | undefined
  /** Loads the package. Default: imports `@huggingface/transformers`, an optional peer dependency. */
  readonly load?: (() => Promise<TransformersModule>) | undefined
}

const transformersOptionChecks: OptionChecks<TransformersOptions> = {
  model: nonEmptyText,
  localModelPath: anyText,
  allowDownload: trueOrFalse,
  pooling: oneOf('mean', 'cls'),
  dtype: anyText,
  weight: share(true),
  load: anyFunction,
}

/** Texts per run of the encoder: a longer batch is padded to its longest text and holds up questions. */
const textsPerRun = 8

/**
 * Creates an embedder that runs a model in this process with `@huggingface/transformers`, which must be installed. The
 * model is loaded with the first text. Nothing is downloaded unless `allowDownload` is set.
 *
 * @throws MemoryError `embed` throws `bad-option` when the package or the weights are missing, `upstream` when the
 * model fails.
 *
 * @example
 * const embedder = transformersEmbedder({ model: 'Xenova/all-MiniLM-L6-v2', localModelPath: '/srv/models' })
 */
export function transformersEmbedder(options: TransformersOptions): Embedder {
  checkOptions<TransformersOptions>('transformersEmbedder', options, transformersOptionChecks)
  const { model, pooling = 'mean', dtype, weight } = options
  let encoder: Promise<Encoder> | undefined
  const loadOnce = (): Promise<Encoder> => {
    encoder ??= loadEncoder(options).catch((error: unknown) => {
      // Weights may be put in place later.
      encoder = undefined
      throw error
    })
    return encoder
  }
  return {
    name: ['transformers', model, ...(pooling === 'mean' ? [] : [pooling]), ...(dtype ? [dtype] : [])].join(':'),
    ...(weight !== undefined && { weight }),
    async embed(texts, signal) {
      if (texts.length === 0) return []
      const encode = await loadOnce()
      const vectors: Float32Array[] = []
      for (let start = 0; start < texts.length; start += textsPerRun) {
        signal?.throwIfAborted()
        const batch = texts.slice(start, start + textsPerRun)
        const tensor = await encode(batch, { pooling, normalize: true }).catch((cause: unknown) => {
          throw new MemoryError('upstream', `The model ${model} failed to embed a text. Try another model.`, { cause })
        })
        vectors.push(...splitRows(tensor, batch.length, model))
      }
      return vectors
    },
  }
}

async function loadEncoder(options: TransformersOptions): Promise<Encoder> {
  const { model, localModelPath, allowDownload = false, dtype, load = importTransformers } = options
  const { env, pipeline } = await load()
  if (localModelPath !== undefined) env.localModelPath = localModelPath
  try {
    return await pipeline('feature-extraction', model, {
      local_files_only: !allowDownload,
      ...(dtype !== undefined && { dtype }),
    })
  } catch (cause) {
    const place = localModelPath ?? env.localModelPath ?? 'the models folder'
    const remedy = allowDownload
      ? 'Check the name of the model and the connection to the Hugging Face Hub.'
      : `Put its ONNX weights into ${place}, or allow the download.`
    throw new MemoryError('bad-option', `The model ${model} cannot be loaded. ${remedy}`, { param: 'embedder', cause })
  }
}

/** A variable, because the package is an optional peer that compilers and bundlers need not find. */
const packageName: string = '@huggingface/transformers'

async function importTransformers(): Promise<TransformersModule> {
  try {
    return await import(packageName)
  } catch (cause) {
    throw new MemoryError(
      'bad-option',
      `The embedder needs the package ${packageName}, which cannot be loaded. Run npm install ${packageName}, and put the weights of the model into a local folder.`,
      { param: 'embedder', cause },
    )
  }
}

function splitRows({ data, dims }: Tensor, count: number, model: string): Float32Array[] {
  const [rows, length = 0] = dims
  const values = Float32Array.from(data)
  if (rows !== count || length < 1 || values.length !== count * length)
    throw new MemoryError(
      'upstream',
      `The model ${model} returned no vector per text. Use a model for sentence embeddings.`,
    )
  return Array.from({ length: count }, (_, row) => values.slice(row * length, (row + 1) * length))
}
