import { describe, expect, it } from 'vitest'
import { findSecrets } from '../../src/text/secrets.ts'
import { verifies } from '../requirements/verifies.ts'

const found = (text: string): readonly string[] => findSecrets(text).map(({ start, end }) => text.slice(start, end))

describe('findSecrets › tables and lists', () => {
  verifies('X-08', 'with a column of secrets › finds the cells of all rows, and no others', () => {
    for (const text of [
      '| user | password | role |\n|---|---|---|\n| ann | S3cret!x | admin1 |\n| bob | wm7Fq2xL9 | user2 |',
      'name,password,role\nann,S3cret!x,admin1\nbob,wm7Fq2xL9,user2\n\nThe end',
      "INSERT INTO users (name, password, role) VALUES ('ann', 'S3cret!x', 'admin1'), ('bob', 'wm7Fq2xL9', 'user2');",
      'COPY users (name, password, role) FROM stdin;\nann\tS3cret!x\tadmin1\nbob\twm7Fq2xL9\tuser2\n\\.\n',
      '{"stdout":"name\\tpassword\\nann\\tS3cret!x\\nbob\\twm7Fq2xL9\\n","code":"a1b2c3d4"}',
    ])
      expect([text, found(text)]).toEqual([text, ['S3cret!x', 'wm7Fq2xL9']])
  })

  it('with quoted cells, delimiters in values and plain words › finds the values', () => {
    expect(found('name,password,note\nann,"a1,b""c","two\nlines"\nbob,swordfish,x\n')).toEqual(['a1,b""c', 'swordfish'])
    expect(found('name,password\nann,wm7F,q2xL\n')).toEqual(['wm7F,q2xL'])
    expect(found('| user | password |\n|---|---|\n| ann | `swordfish` |')).toEqual(['swordfish'])
  })

  it('with tables and statements below each other › finds the values of each', () => {
    const tables = 'id,name,password\n1,ann,wm7Fq2xL9\nname,password\nbob,k1tten99\n'
    expect(found(tables)).toEqual(['wm7Fq2xL9', 'k1tten99'])
    const statement = (value: string): string => `INSERT INTO users (name, password) VALUES ('a', '${value}');\n`
    expect(found(statement('wm7Fq2xL9') + statement('k1tten99'))).toEqual(['wm7Fq2xL9', 'k1tten99'])
  })

  it('after the end of a table › finds nothing more', () => {
    expect(found('name,password\nann,wm7Fq2xL9\n\nbob,release24\n')).toEqual(['wm7Fq2xL9'])
    expect(found("INSERT INTO a (password) VALUES ('wm7Fq2xL9'); ('release24')")).toEqual(['wm7Fq2xL9'])
  })

  it('with a sentence about a change › finds both passwords', () => {
    const both = ['S3cret!x', 'wm7Fq2xL9']
    expect(found('I changed my password from S3cret!x to wm7Fq2xL9.')).toEqual(both)
    expect(found('the old password was S3cret!x, the new one is wm7Fq2xL9')).toEqual(both)
    expect(found('I changed my password from swordfish to wm7Fq2xL9.')).toEqual(['swordfish', 'wm7Fq2xL9'])
  })

  it.each([
    '{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWh","e":"AQAB"}',
    '{"kty":"EC","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmW"}',
    '{"d":"X4cTteJYgn4FYPsXB8rdXix5vwsg1FLN5"}, {"kty":"RSA","n":"abc"}',
    '{"k":"AyM1SysPpbyDfgZld3umj1qz"}',
  ])('with a public key, or another object › finds nothing: %s', (text) => expect(found(text)).toEqual([]))
})

describe('findSecrets › ordinary lists, statements and sentences', () => {
  const ordinary: Readonly<Record<string, readonly string[]>> = {
    'a table': [
      '| Feature | Password | Token |\n|---|---|---|\n| Expiry | none | 30 days |\n| Security | Moderate | Strong |',
      '| Column | Type |\n|---|---|\n| password | varchar(255) |',
      '| Token | Price | Supply |\n|---|---|---|\n| ETH | 1,000.50 | 120M |\n| USDC2 | 1 | 5 |',
      '| Design token | Value |\n|---|---|\n| color-blue-500 | #00f |\n| $space-100 | 4px |',
      '| Suite | Pass | Fail |\n|---|---|---|\n| unit | 120 | 3 |\n| e2e | 98% | 2% |\n| perf | 12.5ms | 3 |',
      '| Env | Secret | Description |\n|---|---|---|\n| prod | S3_BUCKET_KEY | x |\n| dev | `AWS_KEY_2` | y |',
      'user;pass;fail\nunit;12;3\n',
    ],
    'lines with commas': [
      'import {\n  username, password,\n  token2, secret1,\n} from "x"',
      'function f(\n  name, password,\n  host1, port2,\n)',
      'Please enter user, password\nand then, press12',
      'SELECT id, password\nFROM users, tokens1\nWHERE a, b1',
      'password,token,secret are reserved words\nfoo1234,bar1234,baz1234',
    ],
    'a statement': [
      'INSERT INTO users (name, password) VALUES (?, ?), ($1, $2), (%s, NULL)',
      "INSERT INTO users (name, password) VALUES (':name', ':password')",
      "INSERT INTO users (name, email) VALUES ('ann', 'a1@b.org')",
    ],
    'a command': [
      'echo "$PASS" | sudo -S ls',
      'echo $(cat f) | docker login --password-stdin',
      'cat pw1 | docker login --password-stdin',
      'sudo -S ls <<< "$PASS"',
      'echo hello1 | grep -S x',
      'md5("hello1")',
    ],
    'text with colons': [
      'meet at 10:30:00:00 or 12:30:45',
      'fe80::1:2:3:4 and 2001:db8:0:1:5432:ff:fe00:42',
      'file.ts:10:5:error:message',
      'src/a.ts:5432:5:error:message',
      'ports: - "5432:5432" and 127.0.0.1:5432:5432',
      'arn:aws:s3:*:123456789012:accesspoint/x',
      '~/.pgpass is read at 10:30:00:00:12 by it',
      'db:5432:app:ann:<password>',
    ],
    'a code': ['WIFI:T:nopass;S:name1;;', 'wifi: T: WPA', 'WIFI:T:WPA;S:name;P:<password>;;'],
    'a manifest or a setting': [
      'kind: ConfigMap\ndata:\n  key1: value123\n---\nkind: Secret\nmetadata:\n  name: db1-secret\n',
      'kind: Service\nspec:\n  data:\n    a: b1234567\n',
      '{"auth":"required"}, auth: "bearerAuth", auth=passportJwt',
      'price $1$ and $2a$, then $5$ to $6$ each',
      'requirepass foo\nmasterauth <password>',
      'variable "region" {\n  default = "eu-west-1"\n}',
      'variable "db_password" {\n  type = string\n}',
    ],
    'a sentence': [
      'The password policy changed from optional to required.',
      'Failed password for invalid user admin from 10.0.0.1 to 10.0.0.2',
      'I changed the password expiry from 90d to 30d, and its length from 8 to 12',
      'I moved the password from config.yml to vault2.yml',
      'The password was changed from 2024-01-01 to 2025-01-01',
      'I lost my password manager. The new one is better, the old one was v1.2.',
      'Das Passwort war falsch. Das neue ist besser. Le mot de passe était incorrect.',
      'パスワードを忘れました。パスワードを8文字以上にしてください。密码改成别的。',
    ],
  }
  for (const [name, texts] of Object.entries(ordinary))
    it.each(texts)(`finds nothing in ${name}: %j`, (text) => expect(found(text)).toEqual([]))
})
