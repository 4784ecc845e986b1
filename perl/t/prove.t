use lib 't/lib';
use Shop qw(psql prove);
use Cwd qw(abs_path);
use Test::More;

my $lib = abs_path('lib');
mkdir "$Shop::home/t" or die $!;

sub file {
    my ($name, $text, $mode) = @_;
    open my $file, '>', "$Shop::home/t/$name" or die $!;
    print $file $text;
    close $file or die $!;
    chmod $mode // 0644, "$Shop::home/t/$name" or die $!;
}

sub prove {
    my @words = @_;
    local @ENV{qw(PGSERVICE PERL5LIB)} = ('elsewhere', "$lib:$Shop::home/t");
    open my $out, '-|', "cd $Shop::home && prove @words 2>&1" or die $!;
    my $said = do { local $/; <$out> };
    close $out;
    return ($? >> 8, $said);
}

# Each finds the whole template, and destroys what it has found.
file("$_.t", <<'T') for 1 .. 5;
use Test::More tests => 3;
is qx(psql -qtAc 'SELECT count(*) FROM customers'), "100\n";
is system(qw(psql -qc), 'DROP TABLE customers'), 0;
is qx(psql -qtA \$DATABASE_URL -c 'SELECT 1'), "1\n";
T
file('shell.t', <<'T', 0755);
#!/bin/sh
[ "$(psql -qtAc 'SELECT count(*) FROM customers')" = 100 ] && echo ok 1 || echo not ok 1
[ -z "${PGSERVICE+set}" ] && echo ok 2 || echo not ok 2
echo 1..2
T
my ($code, $said) = prove('-j4', '-PCalve=shop', 't');
is $code, 0, 'each test has a server' or diag $said;
like $said, qr/Tests=17/, 'all were run';
is Shop::running(), 0, 'no server is left';

file('dies.t', 'kill 9, $$');
($code, $said) = prove('-PCalve=shop', 't/dies.t', 't/1.t');
isnt $code, 0, 'a test that is killed';
like $said, qr{t/1\.t \.+ ok}, 'others go on';
is Shop::running(), 0, 'no server is left';

($code, $said) = prove('-PCalve=none', 't/1.t');
isnt $code, 0, 'a template that is not there';
like $said, qr/there is no template `none`\nhint: /, 'is named, with what to do';
($code, $said) = prove('-PCalve', 't/1.t');
like $said, qr/name one template: -PCalve=NAME/, 'no template';

file('My.pm', 'package My; use parent "TAP::Harness"; sub make_parser { print "mine\n"; shift->SUPER::make_parser(@_) } 1');
($code, $said) = prove('--harness', 'My', '-PCalve=shop', 't/1.t');
is $code, 0, 'with another harness' or diag $said;
like $said, qr/^mine$/m, 'which is in use';
done_testing;
