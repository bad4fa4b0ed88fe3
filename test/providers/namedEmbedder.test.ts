import { describe, expect, it } from 'vitest'
import { createEmbedder, parseEmbedderName } from '../../src/providers/namedEmbedder.ts'
import { sendRaw, startUpstream } from './upstream.ts'

const respondWithVector = sendRaw('application/json', '{"data":[{"index":0,"embedding":[1]}],"embeddings":[[1]]}')

describe('parseEmbedderName', () => {
  it.each([
    ['ollama:nomic-embed-text', 'ollama', 'nomic-embed-text', undefined],
    ['ollama:hf.co/a/b:Q4@http://gpu:11434', 'ollama', 'hf.co/a/b:Q4', 'http://gpu:11434'],
    [' openai:text-embedding-3-small ', 'openai', 'text-embedding-3-small', undefined],
    ['openai:bge-m3@https://host/v1', 'openai', 'bge-m3', 'https://host/v1'],
    ['transformers:Xenova/all-MiniLM-L6-v2', 'transformers', 'Xenova/all-MiniLM-L6-v2', undefined],
    ['transformers:Xenova/m@/srv/my models', 'transformers', 'Xenova/m', '/srv/my models'],
  ])('of %j › names provider, model and location', (name, provider, model, location) =>
    expect(parseEmbedderName(name)).toEqual({ provider, model, location }),
  )

  it.each([
    'nomic-embed-text',
    'ollama:',
    'cohere:embed',
    'openai:m@host/v1',
    'openai:m@ftp://host',
    'openai:m@https://ann:pw@host/v1',
    'openai:m@https://host/v1?key=k',
    '',
  ])('of %j › is undefined', (name) => expect(parseEmbedderName(name)).toBeUndefined())
})

describe('createEmbedder', () => {
  it('with an invalid name › lists the forms and does not repeat the address', () => {
    expect(() => createEmbedder('openai:m@https://ann:pw123@host', {})).toThrow(
      'embedder is "openai:m@…"; it must be ollama:MODEL, ollama:MODEL@URL, openai:MODEL, openai:MODEL@URL, transformers:MODEL or transformers:MODEL@FOLDER.',
    )
  })

  it('of OpenAI without a key › says which variable to set', () => {
    expect(() => createEmbedder('openai:m', {})).toThrow('Set OPENAI_API_KEY')
    expect(createEmbedder('openai:m', { OPENAI_API_KEY: 'k' }).name).toBe('m')
  })

  it('with an address › sends it the embedder key, never the key of OpenAI', async () => {
    await using upstream = await startUpstream(respondWithVector)
    for (const [provider, environment] of [
      ['openai', { OPENAI_API_KEY: 'sk-openai' }],
      ['openai', { OPENAI_API_KEY: 'sk-openai', THREADKEEP_EMBEDDER_KEY: 'own' }],
      ['ollama', { OPENAI_API_KEY: 'sk-openai' }],
    ] as const)
      await createEmbedder(`${provider}:m@${upstream.url}`, environment).embed(['a'])
    expect(upstream.requests.map(({ path, headers }) => [path, headers.authorization])).toEqual([
      ['/v1/embeddings', undefined],
      ['/v1/embeddings', 'Bearer own'],
      ['/api/embed', undefined],
    ])
  })

  it('of transformers › accepts true and false as permission to download', () => {
    const create = (text: string) => createEmbedder('transformers:m', { THREADKEEP_MODEL_DOWNLOAD: text })
    expect([create('').name, create('true').name]).toEqual(['transformers:m', 'transformers:m'])
    expect(() => create('yes')).toThrow('THREADKEEP_MODEL_DOWNLOAD is "yes"; it must be true or false.')
  })
})
