// Evidence in budget: the share of turns that a question needs and the context contains, by exact token count.
import { printMetric } from './datasets.ts'

await printMetric('evidence', ['thread', 'bm25', 'window'])
