import { describe, expect, it } from 'vitest'
import { type TransformersModule, transformersEmbedder } from '../../src/providers/transformersEmbedder.ts'

type Loading = { readonly model: string; readonly options: unknown; readonly path: string | undefined }

/** Module with the surface of `@huggingface/transformers`: embeds a text as its length and its first character code. */
function tinyModule(isPresent: () => boolean = () => true) {
  const loadings: Loading[] = []
  const batches: number[] = []
  const module: TransformersModule = {
    env: {},
    async pipeline(_task, model, options) {
      loadings.push({ model, options, path: module.env.localModelPath })
      if (!isPresent()) throw new Error('file was not found locally')
      return async (texts, { pooling, normalize }) => {
        expect([pooling, normalize]).toEqual(['mean', true])
        batches.push(texts.length)
        if (texts.includes('crash')) throw new Error('out of memory')
        const data = Float32Array.from(texts.flatMap((text) => [text.length, text.charCodeAt(0)]))
        return { data, dims: texts.includes('flat') ? [data.length] : [texts.length, 2] }
      }
    },
  }
  return { loadings, batches, load: async () => module }
}

const model = 'Xenova/all-MiniLM-L6-v2'

describe('transformersEmbedder', () => {
  it('embed › loads the model once, from local files only, and returns a vector per text', async () => {
    const { load, loadings, batches } = tinyModule()
    const embedder = transformersEmbedder({ model, localModelPath: '/srv/models', dtype: 'q8', load })
    expect(embedder.name).toBe(`transformers:${model}:q8`)
    expect(loadings).toEqual([])
    const texts = Array.from({ length: 10 }, (_, place) => 'x'.repeat(place + 1))
    expect(await embedder.embed(texts)).toEqual(texts.map(({ length }) => Float32Array.of(length, 120)))
    await embedder.embed(['y'])
    expect(loadings).toEqual([{ model, options: { local_files_only: true, dtype: 'q8' }, path: '/srv/models' }])
    expect(batches).toEqual([8, 2, 1])
  })

  it('with allowDownload › may fetch the weights', async () => {
    const { load, loadings } = tinyModule()
    await transformersEmbedder({ model, allowDownload: true, load }).embed(['a'])
    expect(loadings[0]?.options).toEqual({ local_files_only: false })
  })

  it('embed › without local weights › says where to put them, and works once they are there', async () => {
    let isPresent = false
    const { load } = tinyModule(() => isPresent)
    const embedder = transformersEmbedder({ model, localModelPath: '/srv/models', load })
    await expect(embedder.embed(['a'])).rejects.toMatchObject({
      code: 'bad-option',
      message: `The model ${model} cannot be loaded. Put its ONNX weights into /srv/models, or allow the download.`,
    })
    isPresent = true
    expect(await embedder.embed(['a'])).toEqual([Float32Array.of(1, 97)])
  })

  it('embed › without the package › says how to install it', async () => {
    await expect(transformersEmbedder({ model }).embed(['a'])).rejects.toMatchObject({
      code: 'bad-option',
      message: expect.stringContaining('Run npm install @huggingface/transformers'),
    })
  })

  it.each([
    ['crash', 'failed to embed a text'],
    ['flat', 'returned no vector per text'],
  ])('embed › with a model that cannot embed %j › fails with the problem', async (text, problem) => {
    const { load } = tinyModule()
    await expect(transformersEmbedder({ model, load }).embed([text])).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringContaining(problem),
    })
  })

  it('embed › aborted › stops before the next batch', async () => {
    const { load, batches } = tinyModule()
    const stopped = AbortSignal.abort(new Error('stop'))
    await expect(transformersEmbedder({ model, load }).embed(['a'], stopped)).rejects.toThrow('stop')
    expect(batches).toEqual([])
  })
})
