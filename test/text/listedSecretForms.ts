import {
  digit,
  form,
  lower,
  type RandomSource,
  type SecretForm,
  shellPassword,
  stated,
  url,
  word,
} from './secretForms.ts'

/** Password without delimiters of tables. */
const cellPassword = ({ text }: RandomSource): string =>
  text(`${word}!#`, 1) + text(`${word}!@#$%^&*()+/:.<>?~_-`, [6, 20]) + text(digit, 1) + text(lower, 1)
/** Password with any printable characters but quotes and backslashes. */
const sqlPassword = ({ text }: RandomSource): string =>
  text(`${word}!#`, 1) + text(`${word}!#$%&*+,-./:;<=>?@[]^_{|}~`, [6, 20]) + text(digit, 1) + text(lower, 1)

/** Secrets in tables, statements, commands and files that have no name beside them, and in sentences about a change. */
export const listedForms: readonly SecretForm[] = [
  stated(
    'password, changed',
    ['I changed my password from ', ' to wm7Fq2xL9.'],
    ['My password was changed from wm7Fq2xL9 to ', ' yesterday'],
    ['the old password was ', ', the new one is wm7Fq2xL9'],
    ['the old password was wm7Fq2xL9, the new one is ', '.'],
    ['my password used to be ', ' for years'],
    ['Ich habe mein Passwort von ', ' auf wm7Fq2xL9 geändert.'],
    ['Ich habe mein Passwort von wm7Fq2xL9 auf ', ' geändert.'],
    ['Das alte Passwort war ', ', das neue ist wm7Fq2xL9.'],
    ['Das alte Passwort war wm7Fq2xL9, das neue ist ', '.'],
    ["J'ai changé mon mot de passe de ", ' à wm7Fq2xL9.'],
    ["L'ancien mot de passe était wm7Fq2xL9, le nouveau est ", '.'],
    ['He cambiado mi contraseña de ', ' a wm7Fq2xL9.'],
    ['La contraseña antigua era ', ', la nueva es wm7Fq2xL9.'],
    ['Mudei minha senha de wm7Fq2xL9 para ', '.'],
    ['Ho cambiato la password da wm7Fq2xL9 a ', '.'],
    ['Ik heb mijn wachtwoord veranderd van ', ' naar wm7Fq2xL9.'],
    ['Zmieniłem hasło z ', ' na wm7Fq2xL9.'],
    ['Я сменил пароль с wm7Fq2xL9 на ', '.'],
    ['我把密码从', '改成wm7Fq2xL9。'],
    ['旧密码是wm7Fq2xL9，新的是', '。'],
    ['パスワードを', 'からwm7Fq2xL9に変更しました。'],
    ['비밀번호를 wm7Fq2xL9에서 ', '로 변경했습니다.'],
  ),
  form('password in a table', cellPassword, [
    ['| user | password |\n|---|---|\n| ann | ', ' |\n| bob | x |'],
    ['| user | password |\n|---|---|\n| bob | x1 |\n| ann | `', '` |'],
    ['name,password,role\nbob,wm7Fq2xL9,user\nann,', ',admin\n'],
    ['"name","password"\n"ann","', '"\n'],
    ['Name;Kennwort\r\nann;', '\r\n'],
    ['id\tpassword\n1\t', '\n'],
    [' id | password  \n----+-----------\n  1 | ', '\n(1 row)'],
    ['+----+----------+\n| id | password |\n+----+----------+\n|  1 | ', ' |\n+----+----------+'],
    ['{"stdout":"name,password\\nann,', '\\nbob,x\\n"}'],
    ['COPY users (id, password) FROM stdin;\n1\t', '\n\\.\n'],
  ]),
  form('token in a table', ({ text }) => text(word, [24, 48]), [
    ['| service | token |\n|---|---|\n| mail | ', ' |'],
    ['service,api_key\nmail,', '\n'],
    ['client_id,client_secret\na1,', '\n'],
    [' id | secret \n----+--------\n  1 | ', '\n'],
  ]),
  form('password in SQL', sqlPassword, [
    ["INSERT INTO users (name, password) VALUES ('ann', '", "');"],
    ["INSERT INTO users (id, name, password) VALUES (1, 'it''s', 'x'),\n(2, 'b', '", "'), (3, 'c', NULL);"],
    ["INSERT INTO users (password, name) VALUES (crypt('", "', gen_salt('bf')), 'ann')"],
    ["CREATE USER ann WITH PASSWORD '", "';"],
    ["ALTER ROLE ann WITH ENCRYPTED PASSWORD '", "'"],
    ["ALTER USER 'ann'@'%' IDENTIFIED WITH mysql_native_password BY '", "';"],
    ["UPDATE users SET password = '", "' WHERE id = 1"],
    ["UPDATE users SET password = crypt('", "', gen_salt('bf'))"],
    ["SET PASSWORD FOR 'ann'@'localhost' = '", "';"],
  ]),
  form('password on standard input', shellPassword, [
    ["echo '", "' | sudo -S apt update"],
    ['echo ', ' | passwd --stdin ann'],
    ["printf '%s' '", "' | docker login -u ann --password-stdin"],
    ['echo "', '" | gpg --batch --passphrase-fd 0 -d a'],
    ['echo "ann:', '" | chpasswd'],
    ["sudo -S ls <<< '", "'"],
    ['docker login -u ann --password-stdin ghcr.io <<< ', '\n'],
  ]),
  form('pgpass', ({ text }) => text(word, 1) + text(`${word}!@#$%^*_+=~?-`, [6, 20]) + text(digit, 1), [
    ['db.example.org:5432:app:ann:', '\n'],
    ['*:*:*:postgres:', ''],
    ['$ cat ~/.pgpass\ndb.local:6000:app:ann:', '\n'],
    ["echo 'localhost:5432:*:ann:", "' > ~/.pgpass"],
  ]),
  form('WiFi code', ({ text }) => text(`${word}!#$%&*+-/=?@^_.~ `, [8, 63]), [
    ['WIFI:T:WPA;S:name;P:', ';;'],
    ['WIFI:S:my\\;name;T:WPA;P:', ';H:true;;'],
    ['{"data":"WIFI:T:WPA;S:name;P:', ';;"}'],
  ]),
  form('JSON Web Key', ({ text }) => text(url, [43, 86]), [
    ['{"kty":"EC","crv":"P-256","x":"a","y":"b","d":"', '"}'],
    ['{"kty":"RSA","n":"abc","e":"AQAB","d":"', '"}'],
    ["{ n: 'abc', d: '", "', kty: 'RSA' }"],
    ['{"keys":[{"kty":"RSA","n":"abc","dp":"', '","e":"AQAB"}]}'],
    ['{"kty":"oct","alg":"HS256","k":"', '"}'],
    ['{\\"kty\\":\\"oct\\",\\"k\\":\\"', '\\"}'],
  ]),
  form(
    'password hash',
    ({ text, pick }) =>
      pick([
        `$apr1$${text(`${word}./`, 8)}$${text(`${word}./`, 22)}`,
        `$2${pick(['a', 'b', 'y'])}$10$${text(`${word}./`, 53)}`,
        `$6$${text(`${word}./`, 16)}$${text(`${word}./`, 86)}`,
        `$y$j9T$${text(`${word}./`, 22)}$${text(`${word}./`, 43)}`,
        `$argon2id$v=19$m=65536,t=3,p=4$${text(`${word}+/`, 22)}$${text(`${word}+/`, 43)}`,
      ]),
    [
      ['ann:', ''],
      ['root:', ':19000:0:99999:7:::'],
      ['{"hash":"', '"}'],
    ],
  ),
  form('Kubernetes Secret', ({ text }) => btoa(text(word, [8, 40])), [
    ['apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  username: YWRtaW4xMjM=\n  url: ', '\n'],
    ['data:\n  config: ', '\nkind: Secret\ntype: Opaque\n---\nkind: Service'],
    ['kind: Secret\nstringData:\n  config: "', '"\n'],
  ]),
  form('login in base64', ({ text }) => btoa(`${text(lower, [3, 8])}:${text(word, [12, 30])}`), [
    ['{"auths":{"r.example.org":{"auth":"', '"}}}'],
    ['//r.example.org/:_auth=', '\n'],
  ]),
  form(
    'private key in base64',
    ({ text, pick }) =>
      btoa(`-----BEGIN ${pick(['RSA ', 'EC ', '', 'OPENSSH '])}PRIVATE KEY-----\n${text(word, [80, 400])}`),
    [
      ['client-key-data: ', '\n'],
      ['"key":"', '"'],
    ],
  ),
  form(
    'setting without a usual name',
    ({ text }) => text(word, 1) + text(`${word}@%+_-`, [6, 21]) + text(digit, 1) + text(lower, 1),
    [
      ['requirepass ', '\nbind 127.0.0.1'],
      ['htpasswd -b .htpasswd ann ', '\n'],
      ['ConvertTo-SecureString "', '" -AsPlainText -Force'],
      ['variable "db_password" {\n  type = string\n  default = "', '"\n}'],
      ['psk="', '"'],
      ['SECRET_KEY_BASE=', '\n'],
      ["await bcrypt.hash('", "', 10)"],
    ],
  ),
]
