// Future reference: the share of identifiers reused in the next 2,000 tokens that a context contains with their
// neighbour words.
import { printMetric } from './datasets.ts'

await printMetric('future', ['thread', 'window'])
