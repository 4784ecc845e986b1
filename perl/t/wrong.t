use lib 't/lib';
use Shop;
use Test::Calve;
use Test::More;

# Without the program.
{
    local $ENV{PATH} = $Shop::home;
    is(Test::Calve->new(template => 'shop'), undef, 'without the program there is no server');
    like $Test::Calve::errstr, qr/^the program calve is not in PATH; install calve \d/, 'and what to do';
}

sub program {
    open my $file, '>', "$Shop::home/calve" or die $!;
    print $file "#!/bin/sh\n$_[0]\n";
    close $file or die $!;
    chmod 0755, "$Shop::home/calve" or die $!;
}

local $ENV{PATH} = "$Shop::home:$ENV{PATH}";
my $other = qr/^Test::Calve: the program calve in PATH is calve 0\.0\.1, and this is Test::Calve \d\S+: .*\nhint: install calve \d/;
program('[ "$1" != --version ] || { echo calve 0.0.1; exit; }; echo "error: unexpected argument" >&2; exit 2');
ok !eval { Test::Calve->new(template => 'shop'); 1 }, 'a version that does not know an option';
like $@, $other, 'both versions are named';
program('[ "$1" != --version ] || { echo calve 0.0.1; exit; }; echo \'{"schema": "calve.db.server/1"}\'');
ok !eval { Test::Calve->new(template => 'shop'); 1 }, 'a version that says less';
like $@, $other, 'both versions are named';
program('echo hello');
ok !eval { Test::Calve->new(template => 'shop'); 1 }, 'another program of that name';
like $@, qr/is hello, and this/, 'is told apart';
unlink "$Shop::home/calve" or die $!;
done_testing;
