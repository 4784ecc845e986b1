package App::Prove::Plugin::Calve;

use strict;
use warnings;
use 5.014;

use App::Prove::Plugin::Calve::Harness;

our $VERSION = '0.1.0';

sub load {
    my ($class, $prove) = @_;
    my @names = @{ $prove->{args} };
    die "prove: name one template: -PCalve=NAME\nhint: see `calve db template list`\n" unless @names == 1;
    my $app = $prove->{app_prove};
    App::Prove::Plugin::Calve::Harness->prepare($names[0], $app->harness || $ENV{HARNESS_SUBCLASS} || 'TAP::Harness');
    $app->harness('App::Prove::Plugin::Calve::Harness');
    return 1;
}

1;

__END__

=encoding utf8

=head1 NAME

App::Prove::Plugin::Calve - a filled database server for each test file

=head1 SYNOPSIS

  prove -j8 -PCalve=shop

or, once for all, in F<.proverc>:

  -PCalve=shop

=head1 DESCRIPTION

Each test file gets a database server of its own, on a clone of the template C<shop>, and finds it by C<DATABASE_URL>, and by C<PGHOST>,
C<PGPORT>, C<PGUSER> and C<PGDATABASE>, or C<MYSQL_UNIX_PORT>, C<MYSQL_HOST> and C<MYSQL_TCP_PORT>. Variables that would lead its client
programs to another server are unset. The server ends with the test, or with prove, also when that is killed.

Tests need not be in Perl, and nothing in them knows of Calve. The program C<calve> must be in C<PATH>. A harness that is given by
C<--harness> stays in use.

=head1 SEE ALSO

L<Test::Calve>

=head1 LICENSE

MIT or Apache-2.0, as you like.

=cut
