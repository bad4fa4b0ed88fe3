import type { Expectations } from '../score.ts'

export const toolRun: Expectations = {
  facts: [
    ['pnpm, not npm', /pnpm/],
    ['current release date', /17 March/i],
    ['half-even rounding', /half-even/i],
    ['no new dependencies', /no new dependencies|dependenc/i],
    ['round per invoice', /per invoice|once at the end/i],
    ['never push to main', /push/i, /main/i],
    ['conventional commits', /conventional commit/i],
    ['export under 2 seconds', /(under|below|limit of|<) ?(2|two) s/i],
    ['no browser in production', /browser/i],
    ['accountant', /Priya/],
  ],
  memory: [
    ['goal', /round/i, /test|invoice/i],
    ['changed rounding', /round\.ts/],
    ['changed total', /total\.ts/],
    ['last outcome of the tests', /97 (tests )?pass|97 tests|all 97/i],
    ['branch', /fix\/half-even/],
    ['commits', /e7710aa|c03e5b8|four commits/i],
    ['cause of the slow export', /layout/i, /width|measure/i],
    ['faster export', /1\.27|1270|under (your limit of )?2 seconds/i],
    ['snapshot updated', /snapshot/i, /updated?/i],
    ['open ticket', /LED-642/, /franc|0\.05|Swiss|Switzerland/i],
    ['open question to Priya', /Priya/, /card payments?|LED-642|confirm/i],
    ['coverage', /91\.2|threshold of 90|coverage[^.]*90/i],
    ['release', /17 March/i],
    ['pnpm and no dependencies', /pnpm|no new dependenc/i],
  ],
  stale: [
    ['old release date', /12 March|Thursday 12/i, /17 March/i],
    [
      'failed tests',
      /three tests fail|3 failed|one snapshot test fails|total still fails/i,
      /all (90|97)|pass(ed)? now|updated/i,
    ],
    ['old duration', /\b9 seconds|9\.14|9140|8\.3/, /1\.27|1270|2 seconds/],
    ['old coverage', /88\.4/, /91\.2/],
    ['old threshold', /threshold[^.]*\b80\b|it's 80 today/i, /\b90\b/],
  ],
  never: [
    ["colleague's tools", /Puppeteer 19/],
    ['test output', /AssertionError|FAIL |Test Files/],
    ['source code', /Math\.(round|floor)\(|reduce\(|columns\.map/],
  ],
  notFacts: [
    ['advice of a colleague', /wkhtmltopdf/i],
    ['guess about Node', /problem of the new Node/i],
    ['guess about cash', /concerns cash only/i],
    ['small talk', /oops|just to be sure/i],
  ],
}
