import { expect } from 'vitest'
import { runSync } from '../../src/domain/work.ts'
import { LineAnalyzer } from '../../src/selection/conversationLines.ts'
import { scoreLinesInSteps } from '../../src/selection/scoreLines.ts'
import { exactTokenizer } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'

verifies('R-03', 'scoreLines › of lines of many words › counts the words of each as work', async () => {
  const createLine = (line: number) => Array.from({ length: 2_000 }, (_, at) => `WORD${line}X${at}`).join(' ')
  const texts = Array.from({ length: 30 }, (_, line) => createLine(line))
  const analyzer = new LineAnalyzer(await exactTokenizer('o200k_base'))
  const { lines } = runSync(analyzer.analyzeInSteps(texts))
  const work = [...scoreLinesInSteps(lines, () => true, '')].reduce((sum, one) => sum + one, 0)
  const words = lines.reduce((sum, { terms }) => sum + terms.length, 0)
  expect([words > 50_000, work > 3 * words]).toEqual([true, true])
})
